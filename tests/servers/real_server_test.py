#!/usr/bin/env python3
"""A real model server drives propose, compile, emulate and judge: llama-server with a model of ours.

Run by ctest (label e2e). The model's weights are random; a grammar in its requests makes every reply one of a family of
kernels, some of which are wrong or do not compile. Skipped, loudly, where no llama-server is.
"""

import unittest

import llama
from harness import events, llm_run, main, models_file, scratch_case

MISSING = "there is no llama-server: " + llama.CURE


@unittest.skipUnless(llama.find(), MISSING)
class a_real_server(scratch_case):
    def check(self, dialect, budget, workers):
        with llama.llama_server(self.folder) as model:
            models = models_file(self.folder / "models.toml", model.url(), dialect, model="random", priced=False,
                                 extra_body=llama.grammar_body(), in_flight=4,
                                 deadlines={"first_event": "5m"})
            run = llm_run(self.folder / "run", models, workers=workers, budget=budget, at_most=280)
            written = model.metrics()["llamacpp:tokens_predicted_total"]
        self.assertIn(run.code, (0, 3), self.kept(run))
        finished = events(self.folder / "run", "attempt_finished")
        judged = [e["data"].get("status") for e in finished if e["data"].get("kind") != "baseline"]
        self.assertIn("PASSED", judged, self.kept(run))
        calls = events(self.folder / "run", "llm_call")
        self.assertTrue(calls)
        for call in calls:
            self.assertEqual(call["data"]["usage"]["state"], "exact", call)
            self.assertEqual(call["data"]["spent"]["nano_usd"], 0)
        counted = sum(c["data"]["usage"]["visible_output"] + c["data"]["usage"]["reasoning"] for c in calls)
        # What we counted is what the server counted.
        self.assertEqual(counted, written)
        return finished

    def test_it_drives_attempts_over_openai_chat(self):
        finished = self.check("openai-chat", ("6attempts", "200s"), 2)
        self.assertGreaterEqual(len(finished), 3)


if __name__ == "__main__":
    main()
