#!/usr/bin/env python3
"""A run of many agents on a model server that fails in every way, is killed, and is cut off; and then the sums.

usage: bench/llm_chaos.py BUILD_FOLDER [--minutes 30] [--agents 50] [--seed 1] [--share 0.25] [--kill-every 45]
                          [--cut-every 60] [--dialect openai-chat] [--keep FOLDER]

`gristmill run --proposer llm` works on three problems through nginx (TLS, HTTP/2) against tests/servers/fault_server.py,
which draws a fault for a share of the calls. Every so often the server is killed with SIGKILL and started again, and
nginx is ended and started again, which cuts every connection. The server writes what it bills before it sends the last
events, as a provider does, and its books survive it.

At the end the log of the run is held against the books, request by request:

- a try whose usage is known must be billed alike, to the token and to 10^-9 USD;
- no request that the server billed may be missing, unless a try of ours is marked as of unknown usage for it;
- the server's whole bill must lie between what we know was spent and that plus what we hold for unknown tries.

Exit code 0 when all of it holds, 1 when it does not. Build the targets of the program first; needs nginx and openssl.
Standard library only.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "servers"))


def wreck(server, front, options, stop, done):
    """Kills and restarts by the seed until `stop` is set."""
    chance = random.Random(options.seed)
    now = time.monotonic()
    kill_at = now + options.kill_every * chance.uniform(0.5, 1.5)
    cut_at = now + options.cut_every * chance.uniform(0.5, 1.5)
    while not stop.wait(0.2):
        now = time.monotonic()
        if now >= kill_at:
            server.stop(signal.SIGKILL)
            time.sleep(chance.uniform(0.2, 3.0))
            server.start()
            done["kills"] += 1
            kill_at = time.monotonic() + options.kill_every * chance.uniform(0.5, 1.5)
        if now >= cut_at:
            front.stop()
            time.sleep(chance.uniform(0.2, 3.0))
            front.start()
            done["cuts"] += 1
            cut_at = time.monotonic() + options.cut_every * chance.uniform(0.5, 1.5)


def compare(calls, sent, lines, number_of):
    """(lines for a person, errors) of ledger and books."""
    errors = []
    by_id = {}
    for line in lines:
        if line["id"] in by_id:
            errors.append("the books have %s twice" % line["id"])
        by_id[line["id"]] = line
    ended = {}
    for call in calls:
        if call["data"]["request"] in ended:
            errors.append("the log ends try %s twice" % call["data"]["request"])
        ended[call["data"]["request"]] = call
    for one in sent:
        if one["data"]["request"] not in ended:
            errors.append("the log never ends try %s" % one["data"]["request"])

    exact = [c for c in calls if c["data"]["usage"]["state"] == "exact" and c["data"]["outcome"] != "not sent"]
    unsent = [c for c in calls if c["data"]["outcome"] == "not sent"]
    unknown = [c for c in calls if c["data"]["usage"]["state"] != "exact" and c["data"]["outcome"] != "not sent"]
    matched = set()
    nameless_free = 0
    for call in exact:
        number = number_of(call)
        counted = call["data"]["spent"]["nano_usd"]
        usage = call["data"]["usage"]
        if number not in by_id:
            # A refusal that costs nothing may come from nginx, or without a number.
            if counted:
                errors.append("try %s: %d counted for request '%s', which the books do not have" %
                              (call["data"]["request"], counted, number))
            nameless_free += 1
            continue
        if number in matched:
            errors.append("request %s is counted twice" % number)
        matched.add(number)
        line = by_id[number]
        if counted != line["nano_usd"]:
            errors.append("request %s: %d counted, %d billed (%s)" % (number, counted, line["nano_usd"], line["fault"]))
        tokens = (usage["uncached_input"] + usage["cache_read"] + usage["cache_write"],
                  usage["visible_output"] + usage["reasoning"])
        if tokens != (line["input"], line["output"]):
            errors.append("request %s: tokens %s counted, %s billed" % (number, tokens, (line["input"], line["output"])))
    for call in unsent:
        if call["data"]["spent"]["nano_usd"] + call["data"]["held"]["nano_usd"]:
            errors.append("try %s was not sent and costs something" % call["data"]["request"])
    nameless = 0
    for call in unknown:
        number = number_of(call)
        nameless += number not in by_id
        if number in by_id:
            if number in matched:
                errors.append("request %s is known twice" % number)
            matched.add(number)
            if by_id[number]["nano_usd"] > call["data"]["held"]["nano_usd"]:
                errors.append("request %s: %d billed, only %d held" %
                              (number, by_id[number]["nano_usd"], call["data"]["held"]["nano_usd"]))
    # Billed, and its number never reached us: each must be one of our tries of unknown usage without a number.
    rest = [line for line in lines if line["id"] not in matched and line["nano_usd"]]
    if len(rest) > nameless:
        errors.append("%d billed requests that we do not know of, and only %d tries of unknown usage without a number" %
                      (len(rest), nameless))
    billed = sum(line["nano_usd"] for line in lines)
    spent = sum(c["data"]["spent"]["nano_usd"] for c in calls)
    held = sum(c["data"]["held"]["nano_usd"] for c in calls)
    if not spent <= billed <= spent + held:
        errors.append("the bill of %d is not between %d and %d" % (billed, spent, spent + held))
    told = [
        "tries: %d sent, %d ended; usage exact %d, unknown %d, not sent %d, refused without a number %d" %
        (len(sent), len(calls), len(exact), len(unknown), len(unsent), nameless_free),
        "server: %d requests, %d billed" % (len(lines), sum(1 for line in lines if line["nano_usd"])),
        "of known usage: we counted %.9f USD; all of it stands in the books alike: %s" %
        (spent / 1e9, "no" if errors else "yes"),
        "the server billed %.9f USD, which is %.9f more, for tries of unknown usage; for these we hold %.9f USD" %
        (billed / 1e9, (billed - spent) / 1e9, held / 1e9),
    ]
    return told, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--kill-every", type=float, default=45)
    parser.add_argument("--cut-every", type=float, default=60)
    parser.add_argument("--dialect", default="openai-chat")
    parser.add_argument("--keep", type=Path, help="folder for the run and the books, instead of one that is removed")
    options = parser.parse_args()
    import harness
    harness.BIN = options.build.resolve()
    if not harness.has_nginx():
        sys.exit("nginx is not installed: scripts/install-dependencies test")
    with tempfile.TemporaryDirectory(prefix="gristmill-chaos-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        server = harness.server("fault_server.py", "--books", folder / "books.jsonl", "--seed", options.seed, "--share",
                                options.share, "--delay-ms", "2", "--piece", "200", "--silence", "8")
        server.start()
        # It comes back at the same place.
        server.command += ["--port", str(server.port)]
        front = harness.front(server.port, folder / "front")
        front.start()
        front.command += ["--port", str(front.port)]
        models = harness.models_file(
            folder / "models.toml", front.url("/chaos/v1", "https"), options.dialect, ca_file=front.ca_file,
            in_flight=options.agents, deadlines={"connect": "3s", "first_event": "5s", "idle": "5s", "wall": "60s"})
        done = {"kills": 0, "cuts": 0}
        stop = threading.Event()
        wrecker = threading.Thread(target=wreck, args=(server, front, options, stop, done))
        wrecker.start()
        try:
            run = harness.gristmill(
                "run", "softmax", "rmsnorm", "silu_and_mul", "--proposer", "llm", "--models", models, "--workers",
                options.agents, "--gpus", "mock:h200:2", "--seed", options.seed, "--budget", "%gs" % (60 * options.minutes),
                "--out", folder / "run", at_most=60 * options.minutes + 300)
        finally:
            stop.set()
            wrecker.join()
            front.stop()
            server.stop()
        lines = [json.loads(line) for line in (folder / "books.jsonl").read_text().splitlines() if line.endswith("}")]
        calls = harness.events(folder / "run", "llm_call")
        sent = harness.events(folder / "run", "llm_sent")
        finished = harness.events(folder / "run", "attempt_finished")
        told, errors = compare(calls, sent, lines, harness.number_of)
        faults, outcomes, ends = {}, {}, {}
        for line in lines:
            faults[line["fault"] or "none"] = faults.get(line["fault"] or "none", 0) + 1
        for call in calls:
            outcomes[call["data"]["outcome"]] = outcomes.get(call["data"]["outcome"], 0) + 1
        for one in finished:
            name = one["data"].get("status") or one["data"].get("outcome")
            ends[name] = ends.get(name, 0) + 1
        print("%.1f minutes, %d agents, %s, seed %d, faults in %g %% of the calls; server killed %d times, network cut %d "
              "times; exit %d" % (options.minutes, options.agents, options.dialect, options.seed, 100 * options.share,
                                  done["kills"], done["cuts"], run.code))
        print("attempts: %d, %s" % (len(finished), ends))
        print("tries by outcome: %s" % outcomes)
        print("faults of the server: %s" % faults)
        print("\n".join(told))
        if run.code not in (0, 3, 5):
            errors.append("the run ended with %d: %s" % (run.code, run.err[-1500:]))
        for error in errors[:40]:
            print("WRONG " + error)
        sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
