#!/usr/bin/env python3
"""Money: a limit that is reached ends the run and is not passed by one call; what cannot be paid for is not begun.

Run by ctest (label e2e). The server's own books are the other side of every sum.
"""

from harness import PRICES, events, gristmill, llm_run, main, models_file, scratch_case, server


class money(scratch_case):
    def test_a_limit_in_dollars_is_never_passed(self):
        with server("engineer_server.py") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url())
            run = llm_run(self.folder / "run", models, budget=("100attempts", "150s", "0.5usd"))
            spent = engineer.books()["keys"]["none"]["nano_usd"]
        # There is a better kernel by then, so that is how the run ends: the money is a budget like any other.
        self.assertEqual(run.code, 0, self.kept(run))
        self.assertIn("the budget of the run is 0.5 USD", run.err)
        self.assertLessEqual(spent, 500_000_000)
        self.assertGreater(spent, 50_000_000)
        calls = events(self.folder / "run", "llm_call")
        self.assertEqual(sum(call["data"]["spent"]["nano_usd"] for call in calls), spent)

    def test_a_limit_that_holds_no_call_begins_none(self):
        with server("engineer_server.py") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url())
            # A cap of thousands of tokens at 15 USD a million is more than a hundredth of a cent.
            run = llm_run(self.folder / "run", models, budget=("5attempts", "60s", "0.0001usd"))
            self.assertEqual(run.code, 5, self.kept(run))
            self.assertEqual(engineer.books()["requests"], 0)

    def test_a_limit_in_calls_is_kept_by_many_workers(self):
        with server("engineer_server.py", "--delay-ms", "1") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url())
            run = llm_run(self.folder / "run", models, problems=("softmax", "rmsnorm"), workers=6,
                          budget=("100attempts", "120s", "7calls"))
            self.assertIn(run.code, (0, 3, 5), self.kept(run))
            self.assertIn("7 calls", run.err)
            self.assertLessEqual(engineer.books()["requests"], 7)
            self.assertGreater(engineer.books()["requests"], 3)

    def test_the_limit_of_a_problem_stops_that_problem_alone(self):
        with server("engineer_server.py") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url())
            run = llm_run(self.folder / "run", models, "--problem-budget", "3calls", problems=("softmax", "rmsnorm"),
                          workers=2, budget=("12attempts", "120s"))
            calls = events(self.folder / "run", "llm_call")
            for problem in ("softmax", "rmsnorm"):
                mine = [call for call in calls if call["problem"] == problem]
                self.assertLessEqual(len(mine), 3, self.kept(run))
                self.assertGreaterEqual(len(mine), 1)

    def test_a_wrong_key_ends_the_run_with_6_and_names_the_variable(self):
        with server("engineer_server.py", env={"GRISTMILL_TEST_KEY": "the-right-one-1234567890"}) as engineer:
            models = models_file(self.folder / "models.toml", engineer.url(), key_env="MY_TEST_KEY")
            wrong = "the-wrong-one-0987654321"
            run = llm_run(self.folder / "run", models, env={"MY_TEST_KEY": wrong}, budget=("5attempts", "60s"))
            self.assertEqual(run.code, 6, self.kept(run))
            self.assertIn("MY_TEST_KEY", run.err)
            self.assertNotIn(wrong, run.err + run.out)
            # Asked once, or by each worker once: never again and again.
            self.assertLessEqual(engineer.books()["requests"], 2)

    def test_a_key_that_is_not_set_is_refused_before_anything_runs(self):
        with server("engineer_server.py") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url(), key_env="NOT_SET_ANYWHERE")
            run = llm_run(self.folder / "run", models, budget=("2attempts", "60s"))
            self.assertEqual(run.code, 2, self.kept(run))
            self.assertIn("NOT_SET_ANYWHERE", run.err)
            self.assertEqual(engineer.books()["requests"], 0)

    def test_an_unknown_price_is_refused_unless_allowed(self):
        # http to this machine would be free; https stands for a provider. Nothing needs to listen there.
        models = models_file(self.folder / "models.toml", "https://127.0.0.1:1/v1", priced=False)
        text = (self.folder / "models.toml").read_text()
        (self.folder / "models.toml").write_text(text.replace("127.0.0.1:1", "models.example:443"))
        run = llm_run(self.folder / "run", models, budget=("2attempts", "30s"))
        self.assertEqual(run.code, 2, self.kept(run))
        self.assertIn("test-model", run.err)
        self.assertIn("--allow-unpriced", run.err)
        self.assertFalse((self.folder / "run").exists(), "a run directory was made")

    def test_a_dry_run_spends_nothing_and_tells_the_worst_case(self):
        with server("engineer_server.py") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url())
            run = llm_run(self.folder / "run", models, "--dry-run", budget=("10attempts", "60s", "2usd"))
            self.assertEqual(run.code, 0, self.kept(run))
            self.assertIn("2", run.out)
            self.assertRegex((run.out + run.err).lower(), r"usd")
            self.assertEqual(engineer.books()["requests"], 0)
            self.assertFalse((self.folder / "run").exists(), "a run directory was made")

    def test_what_a_reply_costs_is_billed_alike_on_both_sides(self):
        with server("engineer_server.py", "--thought", "50") as engineer:
            models = models_file(self.folder / "models.toml", engineer.url(), "anthropic-messages")
            run = llm_run(self.folder / "run", models, budget=("3attempts", "90s"))
            self.assertEqual(run.code, 0, self.kept(run))
            books = engineer.books()["keys"]["none"]
        calls = events(self.folder / "run", "llm_call")
        self.assertGreater(books["cached"], 0)
        self.assertEqual(sum(c["data"]["spent"]["nano_usd"] for c in calls), books["nano_usd"])
        self.assertEqual(sum(c["data"]["usage"]["cache_read"] for c in calls), books["cached"])


if __name__ == "__main__":
    main()
