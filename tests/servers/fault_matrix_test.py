#!/usr/bin/env python3
"""Every fault that providers are known for, and what must come of it; through the real program.

Run by ctest (label e2e). Faults that pass are put one after another between good answers, so that one run meets many of
them; faults that last get a run of their own.
"""

import tempfile
import unittest
from pathlib import Path

from harness import events, front, has_nginx, llm_run, main, models_file, number_of, scratch_case, server

SHORT = {"connect": "2s", "first_event": "1500ms", "idle": "1500ms", "wall": "30s"}

# What the first try of a call comes to when the server does this once, and what of its usage is known. The call must be
# answered by a later try.
PASSING = {
    "429_retry_after": ("throttle", "exact"),
    "429_retry_after_ms": ("throttle", "exact"),
    "429_plain": ("throttle", "exact"),
    "429_html": ("throttle", "exact"),
    "429_empty": ("throttle", "exact"),
    "402_transient": ("throttle", "exact"),
    "529": ("overload", "exact"),
    "503_slow_down": ("overload", "exact"),
    "503_loading": ("transient|overload", "exact"),
    "500": ("transient", "exact"),
    "409": ("transient", "exact"),
    # A gateway may have lost an answer that was billed.
    "502_html": ("transient", "unknown"),
    "408": ("transient", "unknown"),
    "200_error_json": ("ambiguous|transient|overload", "unknown|exact"),
    "200_empty": ("ambiguous|transient", "unknown"),
    "reset_at_once": ("transient|overload|ambiguous", "unknown"),
    "not_http": ("transient|overload|ambiguous", "unknown"),
    "error_mid_stream": ("ambiguous|overload|transient", "unknown|estimated"),
    "cut_mid_stream": ("ambiguous", "unknown|estimated"),
    "no_terminal_event": ("ambiguous", "unknown|estimated"),
    "bad_json": ("ambiguous", "unknown|estimated"),
    "bad_utf8": ("ambiguous|stop", "unknown|estimated|exact"),
    "huge_line": ("ambiguous", "unknown|estimated"),
    "silence": ("ambiguous", "unknown"),
    "silence_after_head": ("ambiguous", "unknown"),
    "silence_mid_stream": ("ambiguous", "unknown|estimated"),
    "comments_only": ("ambiguous", "unknown"),
    "unknown_finish": ("ambiguous", "exact"),
    "empty_stop": ("ambiguous", "exact"),
}

# Whoever is asked there is no model server, or is not asked as it wants: the call fails at once. What it cost is unknown.
STRANGE = {
    "204": ("config", "unknown"),
    "200_error_text": ("config", "unknown"),
    "200_html": ("config", "unknown"),
    "wrong_content_type": ("config", "unknown"),
}

# Odd, and yet a whole answer: the first try is answered.
READ = {
    "comments_between": ("stop", "exact"),
    "one_byte": ("stop", "exact"),
    "crlf": ("stop", "exact"),
    "cr": ("stop", "exact"),
    "split_data": ("stop", "exact"),
    "byte_order_mark": ("stop", "exact"),
    "duplicate_usage": ("stop", "exact"),
    "done_without_end": ("stop", "exact"),
    # Unknown is not zero: what the call may have cost stays held.
    "missing_usage": ("stop", "unknown|estimated"),
}

# Answers that are not what was hoped for. The cap is doubled for the cut ones.
ANSWERED = {
    "length_unowned": ("length", "exact"),
    "all_reasoning": ("length", "exact"),
    "refusal": ("refusal", "exact"),
    "content_filter": ("content filter", "exact"),
}

# Nothing gets better by asking again: the run ends with 6, the provider's code, and says why.
LASTING = {
    "429_money": "money", "429_spend_limit": "money", "402_final": "money", "400_usage_limit": "money",
    "401": "config", "403": "config", "404_model": "config", "400_bad": "config", "422": "config", "redirect": "config",
}


class one_after_another(scratch_case):
    def meet(self, faults, dialect="openai-chat", through=None, known=None):
        """One run in which the server does each of these once. Returns the tries by fault."""
        expected = {**PASSING, **STRANGE, **READ, **ANSWERED}
        sequence = [name for fault in faults for name in (fault, "ok")]
        with server("fault_server.py", "--silence", "6", "--honest") as broken:
            port, ca = broken, ""
            if through:
                through_server = through(broken.port)
                through_server.start()
                self.addCleanup(through_server.stop)
                port, ca = through_server, through_server.ca_file
            endpoint = port.url("/list/%s/v1" % ",".join(sequence), "https" if through else "http")
            models = models_file(self.folder / "models.toml", endpoint, dialect, ca_file=ca, deadlines=SHORT, in_flight=1)
            run = llm_run(self.folder / "run", models, budget=("%dattempts" % (2 * len(faults) + 2), "200s"), at_most=280)
            books = broken.books()
        self.assertEqual(run.code, 0, self.kept(run))
        calls = sorted(events(self.folder / "run", "llm_call"), key=lambda e: e["data"]["request"])
        self.assertGreaterEqual(len(calls), len(sequence), self.kept(run))
        by_id = {line["id"]: line for line in books["lines"]}
        problems = []
        for at, fault in enumerate(faults):
            first, second = calls[2 * at]["data"], calls[2 * at + 1]["data"]
            outcomes, states = expected[fault]
            if first["outcome"] not in outcomes.split("|"):
                problems.append("%s: %s (%s), not %s" % (fault, first["outcome"], calls[2 * at]["reason"], outcomes))
            if first["usage"]["state"] not in states.split("|"):
                problems.append("%s: usage is %s, not %s" % (fault, first["usage"]["state"], states))
            if fault in PASSING and (second["call"], second["try"]) != (first["call"], first["try"] + 1):
                problems.append("%s: was not tried again" % fault)
            if fault in ("length_unowned", "all_reasoning") and second["cap"] != 2 * first["cap"]:
                problems.append("%s: the cap went from %d to %d" % (fault, first["cap"], second["cap"]))
            if first["usage"]["state"] == "exact" and number_of(calls[2 * at]) in by_id:
                billed = by_id[number_of(calls[2 * at])]["nano_usd"]
                if billed != first["spent"]["nano_usd"]:
                    problems.append("%s: billed %d, counted %d" % (fault, billed, first["spent"]["nano_usd"]))
            if first["usage"]["state"] != "exact" and first["held"]["nano_usd"] == 0:
                problems.append("%s: usage is %s and nothing is held" % (fault, first["usage"]["state"]))
        self.assertEqual(problems, [], "\n".join(problems) + "\n" + self.kept(run))
        # No try that the server does not know of, none that we do not know of.
        self.assertEqual(books["requests"], len(calls))

    def test_limits_and_overload(self):
        self.meet(["429_retry_after", "429_retry_after_ms", "429_plain", "429_html", "429_empty", "402_transient", "529",
                   "503_slow_down", "503_loading"])

    def test_errors_of_servers_and_gateways(self):
        self.meet(["500", "409", "502_html", "408", "reset_at_once", "not_http"])

    def test_success_that_is_none(self):
        self.meet(["200_error_json", "200_error_text", "200_html", "200_empty", "204", "wrong_content_type", "empty_stop",
                   "unknown_finish"])

    def test_broken_streams(self):
        self.meet(["error_mid_stream", "cut_mid_stream", "no_terminal_event", "bad_json", "bad_utf8", "huge_line"])

    def test_silence(self):
        self.meet(["silence", "silence_after_head", "silence_mid_stream", "comments_only"])

    def test_odd_streams_are_read(self):
        self.meet(list(READ))

    def test_answers_that_are_cut_off_refused_or_filtered(self):
        self.meet(list(ANSWERED))

    def test_anthropic_messages(self):
        self.meet(["529", "429_html", "error_mid_stream", "no_terminal_event", "one_byte", "split_data", "refusal",
                   "all_reasoning", "unknown_finish", "missing_usage"], "anthropic-messages")

    def test_openai_responses(self):
        self.meet(["500", "429_retry_after_ms", "error_mid_stream", "no_terminal_event", "cr", "all_reasoning",
                   "unknown_finish", "missing_usage"], "openai-responses")

    @unittest.skipUnless(has_nginx(), "nginx is not installed (scripts/install-dependencies test)")
    def test_through_tls_and_http_2(self):
        folder = self.folder / "front"
        self.meet(["429_retry_after_ms", "529", "error_mid_stream", "cut_mid_stream", "no_terminal_event", "one_byte",
                   "silence_mid_stream", "done_without_end", "refusal"], through=lambda port: front(port, folder))


class faults_that_last(scratch_case):
    def test_they_end_the_run_with_6_and_name_the_cause(self):
        for fault, kind in LASTING.items():
            with self.subTest(fault=fault), tempfile.TemporaryDirectory() as folder:
                with server("fault_server.py", "--honest") as broken:
                    models = models_file(Path(folder) / "models.toml", broken.url("/fault/%s/v1" % fault))
                    run = llm_run(Path(folder) / "run", models, budget=("12attempts", "60s"), at_most=90)
                    requests = broken.books()["requests"]
                self.assertEqual(run.code, 6, "%s: %s" % (fault, self.kept(run)))
                self.assertLessEqual(requests, 6, fault)
                calls = events(Path(folder) / "run", "llm_call")
                self.assertEqual({c["data"]["outcome"] for c in calls}, {kind}, fault)
                self.assertEqual(sum(c["data"]["spent"]["nano_usd"] for c in calls), 0)
                if fault != "redirect":
                    self.assertEqual(sum(c["data"]["held"]["nano_usd"] for c in calls), 0)

    def test_a_prompt_that_is_too_large_fails_its_attempt_and_not_the_run(self):
        for fault in ("400_context", "413"):
            with self.subTest(fault=fault), tempfile.TemporaryDirectory() as folder:
                with server("fault_server.py", "--honest") as broken:
                    models = models_file(Path(folder) / "models.toml", broken.url("/fault/%s:2/v1" % fault))
                    run = llm_run(Path(folder) / "run", models, budget=("3attempts", "90s"), at_most=120)
                self.assertEqual(run.code, 0, "%s: %s" % (fault, self.kept(run)))
                outcomes = [c["data"]["outcome"] for c in events(Path(folder) / "run", "llm_call")]
                self.assertEqual(outcomes[:2], ["too big"] * 2, fault)
                self.assertIn("stop", outcomes)

    def test_a_server_that_is_not_there_is_told_and_ends_in_time(self):
        models = models_file(self.folder / "models.toml", "http://127.0.0.1:9/v1")
        run = llm_run(self.folder / "run", models, budget=("2attempts", "40s"), at_most=120)
        self.assertNotEqual(run.code, 0, self.kept(run))
        calls = events(self.folder / "run", "llm_call")
        self.assertTrue(calls)
        for call in calls:
            self.assertEqual(call["data"]["outcome"], "not sent")
            self.assertIn("127.0.0.1", call["reason"])
            self.assertEqual(call["data"]["spent"]["nano_usd"] + call["data"]["held"]["nano_usd"], 0)


if __name__ == "__main__":
    main()
