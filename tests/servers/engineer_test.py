#!/usr/bin/env python3
"""A worker against a scripted engineer: it gets over each kind of trouble and ends with the best kernel.

Run by ctest (label e2e). The real program, the mock GPU, a server of ours on loopback.
"""

import json

from harness import events, gristmill, llm_run, main, models_file, scratch_case, server


class an_engineer_who_errs(scratch_case):
    def go(self, problem, dialect, *arguments, budget=("10attempts", "150s")):
        with server("engineer_server.py") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url(), dialect)
            self.run_folder = self.folder / "run"
            run = llm_run(self.run_folder, models, *arguments, problems=(problem,), budget=budget)
            return run, engineer.books()

    def check_story(self, problem, dialect, mistakes):
        run, books = self.go(problem, dialect)
        self.assertEqual(run.code, 0, self.kept(run))
        finished = [e for e in events(self.run_folder, "attempt_finished") if e["data"].get("kind") != "baseline"]
        told = [(e["data"].get("outcome"), e["data"].get("status")) for e in finished]
        statuses = [status for _, status in told]
        for mistake in mistakes:
            self.assertIn(mistake, statuses, "%s\n%s" % (told, self.kept(run)))
        # It goes up: each kernel that passed is at least as fast as the one before in the script, and the last is best.
        passed = [e["data"]["objective_ns"] for e in finished if e["data"].get("status") == "PASSED" and e["data"]["objective_ns"]]
        self.assertGreaterEqual(len(passed), 3, told)
        self.assertLess(passed[1], passed[0])
        self.assertLess(passed[2], passed[1])
        table = json.loads(gristmill("report", self.run_folder, "--json").out)
        self.assertEqual(table["problems"][0]["best_ns"], min(passed))
        return run, books, finished

    def check_trouble(self, books):
        """What the engineer saw: each mistake was told in the prompt that followed."""
        self.assertEqual(sorted({s["mistake"] for s in books["seen"]}), ["cheat", "compile_error", "wrong"])
        for seen in books["seen"]:
            self.assertTrue(seen["told"], "the next prompt says nothing of it: %s" % seen)
        calls = events(self.run_folder, "llm_call")
        outcomes = [call["data"]["outcome"] for call in calls]
        self.assertIn("refusal", outcomes)
        cut = [call for call in calls if call["data"]["outcome"] == "length"]
        self.assertEqual(len(cut), 1, outcomes)
        # The same call again, with twice the cap.
        again = [call for call in calls
                 if call["data"]["call"] == cut[0]["data"]["call"] and call["seq"] > cut[0]["seq"]]
        self.assertEqual(len(again), 1)
        self.assertEqual(again[0]["data"]["cap"], 2 * cut[0]["data"]["cap"])
        self.assertEqual(again[0]["data"]["outcome"], "stop")
        # One reply without a code block, one repair, with the contract in it.
        repairs = [call for call in calls if call["data"]["purpose"] == "repair"]
        self.assertEqual(len(repairs), 1, outcomes)

    def check_ledger(self, books):
        """What the log says was spent is what the server billed, to the token."""
        calls = events(self.run_folder, "llm_call")
        for call in calls:
            self.assertEqual(call["data"]["usage"]["state"], "exact", call)
        keys = books["keys"]["none"]
        self.assertEqual(len(calls), keys["requests"])
        self.assertEqual(sum(call["data"]["spent"]["nano_usd"] for call in calls), keys["nano_usd"])
        self.assertEqual(sum(call["data"]["spent"]["tokens"] for call in calls), keys["input"] + keys["output"])

    def test_softmax_over_openai_chat(self):
        _, books, _ = self.check_story("softmax", "openai-chat",
                                       ["COMPILE_ERROR", "INCORRECT_NUMERICAL", "REWARD_HACK"])
        self.check_trouble(books)
        self.check_ledger(books)

    def test_rmsnorm_over_anthropic_messages(self):
        # A written input is a fault on this device, before anybody has to judge it.
        _, books, _ = self.check_story("rmsnorm", "anthropic-messages",
                                       ["COMPILE_ERROR", "INCORRECT_NUMERICAL", "RUNTIME_ERROR"])
        self.check_trouble(books)
        self.check_ledger(books)

    def test_silu_and_mul_over_openai_responses(self):
        _, books, _ = self.check_story("silu_and_mul", "openai-responses", ["COMPILE_ERROR", "INCORRECT_NUMERICAL"])
        self.check_trouble(books)
        self.check_ledger(books)

    def test_three_problems_at_once(self):
        with server("engineer_server.py") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url())
            run = llm_run(self.folder / "run", models, problems=("softmax", "rmsnorm", "silu_and_mul"), workers=3,
                          budget=("30attempts", "200s"))
            self.assertEqual(run.code, 0, self.kept(run))
            passed = {e["problem"] for e in events(self.folder / "run", "attempt_finished")
                      if e["data"].get("status") == "PASSED"}
            self.assertEqual(passed, {"softmax", "rmsnorm", "silu_and_mul"})


if __name__ == "__main__":
    main()
