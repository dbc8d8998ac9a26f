#!/usr/bin/env python3
"""The test servers themselves: what stands on the other side of every test of money has to be right.

Run by ctest. Needs neither the program nor a network.
"""

import http.client
import json
import random
import ssl
import struct
import tempfile
import unittest
from pathlib import Path

import engineer
import fault_server
import make_gguf
import make_grammar
import wire
from harness import HERE, front, has_nginx, server

ASKED = {
    wire.chat: {"model": "m", "stream": True, "max_tokens": 4000,
                "messages": [{"role": "system", "content": "law"}, {"role": "user", "content": "outputs: activated"}]},
    wire.messages: {"model": "m", "stream": True, "max_tokens": 4000, "system": "law",
                    "messages": [{"role": "user", "content": "outputs: activated"}]},
    wire.responses: {"model": "m", "stream": True, "max_output_tokens": 4000, "instructions": "law",
                     "input": [{"role": "user", "content": [{"type": "input_text", "text": "outputs: activated"}]}]},
}


def ask(port, path, body, tls=None):
    if tls:
        made = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=ssl.create_default_context(cafile=tls))
    else:
        made = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        made.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = made.getresponse()
        return answer, answer.read()
    finally:
        made.close()


def usage_told(dialect, body):
    """(input, output) as the stream of a dialect tells it."""
    read = written = None
    for block in body.decode().split("\n\n"):
        data = "\n".join(line[6:] for line in block.split("\n") if line.startswith("data: "))
        if not data.startswith("{"):
            continue
        event = json.loads(data)
        if dialect is wire.chat and event.get("usage"):
            read, written = event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"]
        if dialect is wire.messages and event["type"] == "message_start":
            told = event["message"]["usage"]
            read = told["input_tokens"] + told["cache_read_input_tokens"]
        if dialect is wire.messages and event["type"] == "message_delta":
            written = event["usage"]["output_tokens"]
        if dialect is wire.responses and event["type"] == "response.completed":
            read, written = (event["response"]["usage"][k] for k in ("input_tokens", "output_tokens"))
    return read, written


class books(unittest.TestCase):
    def test_they_say_what_the_stream_says_in_each_dialect(self):
        with server("fault_server.py") as s:
            for dialect, body in ASKED.items():
                _, data = ask(s.port, "/v1" + dialect.suffix, body)
                line = s.books()["lines"][-1]
                self.assertEqual(usage_told(dialect, data), (line["input"], line["output"]))
                self.assertTrue(line["told"])
                self.assertEqual(line["nano_usd"],
                                 (line["input"] - line["cached"]) * 3000 + line["cached"] * 300 + line["output"] * 15000)

    def test_every_fault_is_written_down_once(self):
        with server("fault_server.py", "--silence", "0.2") as s:
            asked = 0
            for name in fault_server.FAULTS:
                asked += 1
                try:
                    ask(s.port, "/fault/%s/v1/chat/completions" % name, ASKED[wire.chat])
                except (OSError, http.client.HTTPException):
                    pass
                lines = s.books()["lines"]
                self.assertEqual((len(lines), lines[-1]["fault"]), (asked, name))

    def test_they_survive_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "books.jsonl"
            ids = []
            for _ in range(2):
                with server("engineer_server.py", "--books", file) as s:
                    ask(s.port, "/v1/chat/completions", ASKED[wire.chat])
                    ids = [line["id"] for line in s.books()["lines"]]
            self.assertEqual(len(set(ids)), 2)


class a_list_of_faults(unittest.TestCase):
    def test_each_comes_once_in_order_then_none(self):
        with server("fault_server.py") as s:
            seen = [ask(s.port, "/list/500,ok,529/v1/chat/completions", ASKED[wire.chat])[0].status for _ in range(5)]
        self.assertEqual(seen, [500, 200, 529, 200, 200])

    def test_chaos_is_the_same_for_the_same_seed(self):
        def seen(seed):
            with server("fault_server.py", "--seed", seed, "--share", "0.5", "--faults", "500,529,429_html") as s:
                return [ask(s.port, "/chaos/v1/chat/completions", ASKED[wire.chat])[0].status for _ in range(12)]
        self.assertEqual(seen(3), seen(3))
        self.assertNotEqual(seen(3), seen(4))


class the_engineer(unittest.TestCase):
    def asked(self, cap=8000, text="the output is `probabilities`"):
        return wire.prompt("m", "law", [("user", text)], cap)

    def test_it_goes_through_its_script_and_then_varies(self):
        who = engineer.engineer()
        replies = [who.answer(self.asked()) for _ in range(5)]
        self.assertEqual([reply.why for reply in replies], ["stop"] * 4 + ["refusal"])
        cut = who.answer(self.asked(cap=8000))
        self.assertEqual(cut.why, "length")
        self.assertEqual(who.answer(self.asked(cap=8000)).why, "length")
        self.assertEqual(who.answer(self.asked(cap=16000)).why, "stop")
        more = [who.answer(self.asked()).text for _ in range(5)]
        self.assertNotIn("```", more[0])
        self.assertEqual(len(set(more)), 5)

    def test_it_notes_whether_a_mistake_was_told(self):
        who = engineer.engineer()
        for text in ("x probabilities", "x probabilities", "warp_maximum_of probabilities", "nothing probabilities"):
            who.answer(self.asked(text=text))
        self.assertEqual([(s["mistake"], s["told"]) for s in who.seen], [("compile_error", True), ("wrong", False)])

    def test_what_was_not_delivered_comes_again(self):
        who = engineer.engineer()
        first = who.answer(self.asked())
        who.give_back(first)
        self.assertEqual(who.answer(self.asked()).text, first.text)

    def test_every_step_has_its_files(self):
        who = engineer.engineer()
        for problem, talk in who.problems.items():
            for step in talk.steps:
                if step.get("kernel"):
                    source, plan = who.kernel(problem, step["kernel"])
                    self.assertIn("__global__", source)
                    self.assertEqual(json.loads(plan)["schema"], "gristmill.plan/1")


class a_model_file(unittest.TestCase):
    def test_equal_arguments_give_equal_bytes_and_the_header_counts_right(self):
        one, two = make_gguf.model(1, 1, 64, 4096), make_gguf.model(1, 1, 64, 4096)
        self.assertEqual(one, two)
        self.assertNotEqual(one, make_gguf.model(2, 1, 64, 4096))
        magic, version, tensors, keys = struct.unpack("<4sIQQ", one[:24])
        self.assertEqual((magic, version, tensors, keys), (b"GGUF", 3, 12, 19))
        self.assertEqual(len(one) % 32, 0)


class a_grammar(unittest.TestCase):
    def test_what_is_drawn_keeps_the_fixed_parts_and_the_choices(self):
        text = "a @{b|c\\n} \"d\"\n"
        self.assertEqual(make_grammar.grammar(text), 'root ::= "a " ("b" | "c\\\\n") " \\"d\\"\\n"\n')
        drawn = {make_grammar.draw(text, random.Random(seed)) for seed in range(20)}
        self.assertEqual(drawn, {'a b "d"\n', 'a c\\n "d"\n'})

    def test_ours_has_a_contract_in_it(self):
        text = (HERE / "random" / "softmax.reply").read_text(encoding="utf-8")
        fixed = "".join(part for part in make_grammar.parts(text) if isinstance(part, str))
        for needed in ("HYPOTHESIS: ", "\n```cuda\n", "\n```json\n"):
            self.assertEqual(fixed.count(needed), 1)


@unittest.skipUnless(has_nginx(), "nginx is not installed (scripts/install-dependencies test)")
class a_front(unittest.TestCase):
    def test_it_passes_streams_on_over_tls(self):
        with tempfile.TemporaryDirectory() as folder, server("fault_server.py") as s, front(s.port, folder) as f:
            answer, data = ask(f.port, "/v1/chat/completions", ASKED[wire.chat], tls=f.ca_file)
            self.assertEqual(answer.status, 200)
            self.assertTrue(data.endswith(b"data: [DONE]\n\n"))
            answer, _ = ask(f.port, "/fault/429_html/v1/chat/completions", ASKED[wire.chat], tls=f.ca_file)
            self.assertEqual(answer.status, 429)


if __name__ == "__main__":
    unittest.main(verbosity=2)
