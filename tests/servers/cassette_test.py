#!/usr/bin/env python3
"""A recorded run plays again with no server, byte for byte; and a key is nowhere on the disk.

Run by ctest (label e2e). Secrets are planted in the key's variable, in URLs and in bodies.
"""

import json
import os
import re
import time
from pathlib import Path

from harness import events, gristmill, llm_run, main, models_file, scratch_case, server, start_gristmill

KEY = "sk-test-PLANTED0key1VALUE2of3NOBODY4zzzz"
# What a clock or a process decides; all other bytes of an event must come again.
CLOCKED = {"t", "wall", "seq", "incarnation", "evidence"}


def canonical(event):
    """An event without times."""
    def strip(value):
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items()
                    if k not in CLOCKED and not k.endswith("_ns") and k not in ("took", "first_event")
                    or k in ("objective_ns",)}
        return [strip(v) for v in value] if isinstance(value, list) else value
    return json.dumps(strip(event), sort_keys=True)


def files_with(folder, needle):
    """Files below a folder that hold these bytes, in whatever format: SQLite and its journal as well."""
    return [str(path) for path in Path(folder).rglob("*") if path.is_file() and needle in path.read_bytes()]


class a_recorded_run(scratch_case):
    def record(self, budget=("10attempts", "150s")):
        self.cassette = self.folder / "run.jsonl"
        with server("engineer_server.py") as engineer:
            self.models = models_file(self.folder / "models.toml", engineer.url())
            run = llm_run(self.folder / "first", self.models, "--cassette", "record=%s" % self.cassette, budget=budget)
            self.assertEqual(run.code, 0, self.kept(run))
            self.asked = engineer.books()["requests"]
        return run

    def test_it_plays_again_byte_for_byte_without_a_server(self):
        self.record()
        self.assertGreater(self.cassette.stat().st_size, 10000)
        again = llm_run(self.folder / "again", self.models, "--cassette", "replay=%s" % self.cassette,
                        budget=("10attempts", "150s"))
        self.assertEqual(again.code, 0, self.kept(again))
        for kinds in (("attempt_finished",), ("verdict",), ("compiled",), ("assigned",)):
            first = [canonical(e) for e in events(self.folder / "first", *kinds)]
            second = [canonical(e) for e in events(self.folder / "again", *kinds)]
            self.assertGreater(len(first), 4)
            self.assertEqual(first, second, kinds)
        # Replay finds an answer by the bytes of the request, so equal prompts are what made it work. All were used.
        self.assertEqual(len(events(self.folder / "again", "llm_call")), self.asked)

    def test_a_prompt_that_was_never_recorded_ends_the_run_and_shows_the_nearest_one(self):
        self.record(budget=("4attempts", "120s"))
        lines = self.cassette.read_text(encoding="utf-8").splitlines()
        # Another seed of inputs changes no prompt; another problem does.
        other = llm_run(self.folder / "other", self.models, "--cassette", "replay=%s" % self.cassette,
                        problems=("rmsnorm",), budget=("4attempts", "60s"))
        self.assertNotIn(other.code, (0, 3), self.kept(other))
        self.assertIn("not in the cassette", other.err)
        self.assertGreater(len(lines), 3)


class a_key(scratch_case):
    def test_it_is_nowhere_on_the_disk_nor_in_a_command_line(self):
        env = {"MY_TEST_KEY": KEY}
        with server("engineer_server.py", "--delay-ms", "2", env={"GRISTMILL_TEST_KEY": KEY}) as engineer:
            # The same value in the URL and in the body, where a person may have put it by mistake.
            models = models_file(self.folder / "models.toml", engineer.url("/v1/%s" % "tenant"), key_env="MY_TEST_KEY",
                                 extra_body=json.dumps({"note": "planted " + KEY}))
            run_folder = self.folder / "run"
            cassette = self.folder / "planted.jsonl"
            run_folder_arguments = ["run", "softmax", "--proposer", "llm", "--models", models, "--workers", "1", "--gpus",
                                    "mock:h200:1", "--seed", "7", "--budget", "3attempts", "--budget", "120s", "--out",
                                    run_folder, "--cassette", "record=%s" % cassette]
            child = start_gristmill(*run_folder_arguments, env=env)
            looks = 0
            while child.poll() is None:
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    try:
                        words = Path("/proc/%s/cmdline" % pid).read_bytes()
                    except OSError:
                        continue
                    if b"gristmill" in words:
                        looks += 1
                        self.assertNotIn(KEY.encode(), words)
                time.sleep(0.05)
            out, err = child.communicate()
            self.assertEqual(child.returncode, 0, out + err)
            self.assertGreater(looks, 3)
            self.assertGreater(engineer.books()["requests"], 2)
            self.assertNotIn("wrong_key", json.dumps(engineer.books()["keys"]))
        self.assertNotIn(KEY, out + err)
        # models.toml is the person's own file, and holds the key that the person planted there.
        found = [name for name in files_with(self.folder, KEY.encode()) if not name.endswith("models.toml")]
        self.assertEqual(found, [])
        # Half of it is as bad.
        found = [name for name in files_with(self.folder, KEY[:28].encode()) if not name.endswith("models.toml")]
        self.assertEqual(found, [])
        # It was there to be blacked out: in the URL or the body of each call.
        lines = [json.loads(line) for line in cassette.read_text(encoding="utf-8").splitlines()]
        counts = [line["redacted"]["known"] for line in lines if "redacted" in line]
        self.assertGreater(len(counts), 2)
        self.assertTrue(all(counts), counts)


if __name__ == "__main__":
    main()
