#!/usr/bin/env python3
"""What a person does: mistakes on the command line, Ctrl-C in the middle of a call, a kill and a resume.

Run by ctest (label e2e).
"""

import signal
import time
import unittest

from harness import events, gristmill, llm_run, main, models_file, scratch_case, server, start_gristmill


class mistakes(scratch_case):
    """Each is refused with 2 before anything runs, and the message says what to do."""

    def refused(self, *arguments, needs=(), env=None):
        run = gristmill("run", "softmax", "--out", self.folder / "run", "--budget", "5s", *arguments, env=env, at_most=30)
        self.assertEqual(run.code, 2, self.kept(run))
        for text in needs:
            self.assertIn(text, run.err)
        self.assertFalse((self.folder / "run").exists(), "a run directory was left behind")
        return run

    def test_no_model_at_all(self):
        self.refused("--proposer", "llm", needs=["--model-endpoint", "--models"])

    def test_a_url_that_is_none(self):
        self.refused("--proposer", "llm", "--model-endpoint", "127.0.0.1:80", "--model", "m", needs=["--model-endpoint"])
        self.refused("--proposer", "llm", "--model-endpoint", "ftp://127.0.0.1/v1", "--model", "m", needs=["http"])

    def test_plain_http_to_another_machine(self):
        self.refused("--proposer", "llm", "--model-endpoint", "http://models.example/v1", "--model", "m", needs=["https"])

    def test_a_url_with_a_key_in_it(self):
        run = self.refused("--proposer", "llm", "--model-endpoint", "https://me:s3cr3t@models.example/v1", "--model", "m")
        self.assertNotIn("s3cr3t", run.err)
        run = self.refused("--proposer", "llm", "--model-endpoint", "http://127.0.0.1:1/v1", "--model", "m",
                           "--model-key-env", "sk-abc-123")
        self.assertNotIn("sk-abc-123", run.err)

    def test_an_unknown_dialect_names_the_nearest(self):
        self.refused("--proposer", "llm", "--model-endpoint", "http://127.0.0.1:1/v1", "--model", "m", "--model-dialect",
                     "openai-chatt", needs=["openai-chat"])

    def test_an_unknown_proposer_names_the_nearest(self):
        self.refused("--proposer", "lmm", needs=["llm"])

    def test_a_file_of_models_that_is_not_there(self):
        self.refused("--proposer", "llm", "--models", self.folder / "none.toml", needs=["none.toml"])

    def test_a_misspelled_key_in_the_file_of_models(self):
        path = self.folder / "models.toml"
        models_file(path, "http://127.0.0.1:1/v1")
        path.write_text(path.read_text().replace("in_flight_max", "in_flight_maks"))
        self.refused("--proposer", "llm", "--models", path, needs=["in_flight_maks", "in_flight_max", "models.toml:"])

    def test_a_cap_that_is_below_what_the_program_asks_for(self):
        models = models_file(self.folder / "models.toml", "http://127.0.0.1:1/v1", output_tokens_max=4096)
        self.refused("--proposer", "llm", "--models", models, needs=["output_tokens_max", "16384"])

    def test_a_cassette_that_is_not_there(self):
        models = models_file(self.folder / "models.toml", "http://127.0.0.1:1/v1")
        self.refused("--proposer", "llm", "--models", models, "--cassette", "replay=%s" % (self.folder / "no.jsonl"),
                     needs=["no.jsonl"])

    def test_a_program_that_is_not_there(self):
        models = models_file(self.folder / "models.toml", "http://127.0.0.1:1/v1")
        self.refused("--proposer", "llm", "--models", models, "--program", self.folder / "no.md", needs=["no.md"])

    def test_a_budget_that_is_none(self):
        models = models_file(self.folder / "models.toml", "http://127.0.0.1:1/v1")
        self.refused("--proposer", "llm", "--models", models, "--budget", "5dollars", needs=["5dollars"])

    def test_a_key_where_a_name_belongs(self):
        self.refused("--proposer", "llm", "--model-endpoint", "http://127.0.0.1:1/v1", "--model", "m", "--model-key-env",
                     "sk-abc-123", needs=["--model-key-env"])


class interruptions(scratch_case):
    def begin(self, slow, *more):
        models = models_file(self.folder / "models.toml", slow.url())
        self.run_folder = self.folder / "run"
        return start_gristmill("run", "softmax", "--proposer", "llm", "--models", models, "--workers", "2", "--gpus",
                               "mock:h200:1", "--seed", "7", "--budget", "8attempts", "--budget", "120s", "--out",
                               self.run_folder, *more)

    def until_asked(self, slow, times=2):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            # Not by the test's own reader: the log may be about to be made.
            shown = gristmill("log", "show", self.run_folder, "--json")
            if shown.code == 0 and shown.out.count('"kind":"llm_sent"') >= times:
                return
            time.sleep(0.2)
        self.fail("no call was made in a minute")

    def test_the_first_ctrl_c_lets_calls_end_and_the_log_is_whole(self):
        with server("engineer_server.py", "--delay-ms", "10") as slow:
            child = self.begin(slow)
            self.until_asked(slow)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 130, out + err)
            self.ledger_is_whole(slow)

    def test_the_second_ctrl_c_ends_at_once_and_loses_no_cent(self):
        with server("engineer_server.py", "--delay-ms", "300") as slow:
            child = self.begin(slow)
            self.until_asked(slow)
            child.send_signal(signal.SIGINT)
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
            self.assertEqual(child.returncode, 130, out + err)
            self.ledger_is_whole(slow)

    def ledger_is_whole(self, slow):
        """Every call that was sent has ended in the log; what is not known is held."""
        sent = {e["data"]["request"] for e in events(self.run_folder, "llm_sent")}
        ended = events(self.run_folder, "llm_call")
        self.assertEqual(sent, {e["data"]["request"] for e in ended})
        deadline = time.monotonic() + 10
        while slow.books()["requests"] < len(sent) and time.monotonic() < deadline:
            time.sleep(0.1)
        billed = slow.books()["keys"]["none"]["nano_usd"]
        spent = sum(e["data"]["spent"]["nano_usd"] for e in ended)
        held = sum(e["data"]["held"]["nano_usd"] for e in ended)
        self.assertLessEqual(spent, billed)
        self.assertLessEqual(billed, spent + held)
        self.assertEqual(gristmill("log", "verify", self.run_folder).code, 0)

    def test_a_killed_run_goes_on_and_remembers_what_it_spent(self):
        with server("engineer_server.py", "--delay-ms", "5") as slow:
            child = self.begin(slow)
            self.until_asked(slow, 4)
            child.kill()
            child.communicate()
            before = events(self.run_folder, "llm_call")
            again = gristmill("resume", self.run_folder, at_most=200)
            self.assertEqual(again.code, 0, self.kept(again))
            self.ledger_is_whole(slow)
            after = events(self.run_folder, "llm_call")
            self.assertEqual([e["data"] for e in after[:len(before)]], [e["data"] for e in before])
            self.assertGreater(len(after), len(before))
            finished = events(self.run_folder, "attempt_finished")
            self.assertGreaterEqual(len(finished), 6)


if __name__ == "__main__":
    main()
