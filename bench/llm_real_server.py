#!/usr/bin/env python3
"""Fifty agents and a real model server: `gristmill run --proposer llm` against llama-server, and what came of it.

usage: bench/llm_real_server.py BUILD_FOLDER [--agents 50] [--attempts 500] [--slots 4] [--minutes 60]

The server is llama-server (GRISTMILL_LLAMA_SERVER; scripts/fetch-llama-server), the model random weights of our own
generator, kept to the form of a reply by a grammar (tests/servers/random), and told a short protocol file, because each
byte of a prompt is a token to its vocabulary at first. The problem is small, so that an attempt costs a moment. So the
run shows that everything between an agent and a real server holds, and nothing about kernels. Prints wall time, attempts
by outcome, and tokens by the server's count and by ours. Standard library only.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "servers"))


def counts(items):
    out = {}
    for item in items:
        out[item] = out.get(item, 0) + 1
    return dict(sorted(out.items(), key=lambda pair: -pair[1]))


def prompt_lines(record):
    """Every line of every text that a recorded request sent."""
    found = set()

    def walk(value):
        if isinstance(value, str):
            found.update(line for line in value.split("\n") if len(line) >= 6)
        elif isinstance(value, dict):
            for key, item in value.items():
                if key != "grammar":
                    walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    request = record.get("request", record)
    walk(json.loads(request["body"]) if isinstance(request.get("body"), str) else request)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--attempts", type=int, default=500)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    random = HERE.parent / "tests" / "servers" / "random"
    import harness
    import llama
    harness.BIN = options.build.resolve()
    if not llama.find():
        sys.exit("there is no llama-server: " + llama.CURE)
    reply = random / "softmax_short.reply"

    def go(folder, model, agents, attempts, minutes):
        models = harness.models_file(folder / "models.toml", model.url(), model="random", priced=False,
                                     extra_body=llama.grammar_body(reply), in_flight=options.slots,
                                     deadlines={"first_event": "10m", "idle": "10m"})
        return harness.gristmill(
            "run", random / "small_softmax", "--proposer", "llm", "--models", models, "--program", random / "program_short.md",
            "--workers", agents, "--gpus", "mock:h200:2", "--seed", 7, "--budget", "%dattempts" % attempts, "--budget",
            "%gs" % (60 * minutes), "--out", folder / "run", at_most=60 * minutes + 300)

    with tempfile.TemporaryDirectory(prefix="gristmill-llama-") as temporary:
        # A few attempts teach the vocabulary the lines that prompts are made of: one token each.
        first = Path(temporary) / "first"
        first.mkdir()
        with llama.llama_server(first, options.slots, 16384 * options.slots, reply=reply) as model:
            go(first, model, 1, 3, 5)
        lines = set()
        for record in (first / "run" / "llm" / "cassette.jsonl").read_text(encoding="utf-8").splitlines():
            lines |= prompt_lines(json.loads(record))
        folder = Path(temporary)
        with llama.llama_server(folder, options.slots, 16384 * options.slots, reply=reply,
                                lines=sorted(lines)) as model:
            run = go(folder, model, options.agents, options.attempts, options.minutes)
            server = model.metrics()
            server_tokens = server.get("llamacpp:tokens_predicted_total", 0)
            print("tokens read by the server: %d" % server.get("llamacpp:prompt_tokens_total", 0))
        finished = harness.events(folder / "run", "attempt_finished")
        calls = harness.events(folder / "run", "llm_call")
        usage = [call["data"]["usage"] for call in calls]
        print("agents %d, attempts asked for %d, exit %d, wall %.1f s (%.2f s an attempt over all)" %
              (options.agents, options.attempts, run.code, run.took, run.took / max(len(finished), 1)))
        print("attempts by outcome: %s" % counts(e["data"].get("status") or e["data"].get("outcome") for e in finished))
        print("tries by outcome: %s" % counts(c["data"]["outcome"] for c in calls))
        print("tries by purpose: %s" % counts(c["data"]["purpose"] for c in calls))
        print("tries %d; tokens written: server %d, ours %d (usage exact in %d)" %
              (len(calls), server_tokens,
               sum(u["visible_output"] + u["reasoning"] for u in usage), sum(u["state"] == "exact" for u in usage)))
        took = sorted(call["data"]["took_ns"] / 1e9 for call in calls)
        if took:
            print("a try took: median %.2f s, 95 %% %.2f s, longest %.2f s" %
                  (took[len(took) // 2], took[int(0.95 * (len(took) - 1))], took[-1]))
        print(run.out)
        if run.code not in (0, 3, 5):
            sys.exit(run.err[-3000:])


if __name__ == "__main__":
    main()
