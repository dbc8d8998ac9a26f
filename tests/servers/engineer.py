"""A scripted engineer: what it answers to the prompt of an agent, for three built-in problems.

Its kernels are files of tests/corpus/engineer, and script.json there is the order in which it shows them: a plain one,
mistakes of each kind, then better and better ones. When the script is over it varies the block size of its best kernel.
It reads the prompt like anybody who is asked: which problem it is about, whether a reply of its own was refused, whether
the verdict on its last mistake is told. What it saw of that stands in `seen`.
"""

import json
import re
from pathlib import Path

from wire import tokens_of, usage

CORPUS = Path(__file__).resolve().parent.parent / "corpus" / "engineer"
TRUNCATED_TRIES_MAX = 4


class said:
    """One reply: its text and why it ended there."""

    def __init__(self, text, why="stop", step=None):
        self.text, self.why, self.step = text, why, step


class conversation:
    """Where the engineer stands with one problem."""

    def __init__(self, steps):
        self.steps = steps
        self.turn = 0
        # Turns that were begun and could not be delivered: somebody else gets them.
        self.returned = []
        # What the next prompt should tell of the last mistake.
        self.awaited = None
        # Of a reply that was cut off: the turn, the cap that it had, how often.
        self.cut = None
        self.variations = 0


class engineer:
    def __init__(self, corpus=CORPUS, honest=False):
        """`honest`: leaves the mistakes out, for tests whose trouble comes from elsewhere."""
        self.corpus = Path(corpus)
        script = json.loads((self.corpus / "script.json").read_text(encoding="utf-8"))
        self.marks = script["marks"]
        self.problems = {}
        for name, entry in script["problems"].items():
            steps = entry["steps"]
            if honest:
                steps = [{**step, "kind": "kernel"} for step in steps if step["kind"] in ("kernel", "truncated")]
            self.problems[name] = conversation(steps)
        self.outputs = {entry["output"]: name for name, entry in script["problems"].items()}
        # (problem, turn, kind of mistake, whether the prompt told of it), in order.
        self.seen = []

    def problem_of(self, asked):
        """By the name of its output tensor, which no other problem has."""
        text = "\n".join(text for who, text in asked.messages if who == "user")
        found = [(text.index(word), name) for word, name in self.outputs.items() if re.search(r"\b%s\b" % word, text)]
        return min(found)[1] if found else None

    def kernel(self, problem, name):
        folder = self.corpus / problem
        return ((folder / (name + ".cu")).read_text(encoding="utf-8"),
                (folder / (name + ".plan.json")).read_text(encoding="utf-8"))

    @staticmethod
    def whole(hypothesis, source, plan, strategy=None):
        head = "HYPOTHESIS: %s\n" % hypothesis + ("STRATEGY: %s\n" % strategy if strategy else "")
        return "%s\n```cuda\n%s```\n\n```json\n%s```\n" % (head, source, plan)

    def write(self, problem, step):
        source, plan = self.kernel(problem, step["kernel"])
        return self.whole(step["hypothesis"], source, plan, step.get("strategy"))

    def vary(self, problem, talk):
        """The best kernel with another block size: new work after the script, the same for equal counts."""
        last = [step for step in talk.steps if step.get("kernel")][-1]
        source, plan = self.kernel(problem, last["kernel"])
        sizes = [64, 512, 96, 192, 320, 384, 160, 224, 288, 448, 1024, 32]
        size = sizes[talk.variations % len(sizes)]
        talk.variations += 1
        plan = json.loads(plan)
        for variant in plan["variants"]:
            if "THREADS" in variant.get("defines", {}):
                variant["defines"]["THREADS"] = size
                if "VECTORS" in variant["defines"]:
                    variant["defines"]["VECTORS"] = re.sub(r"\* \d+\)", "* %d)" % size, variant["defines"]["VECTORS"])
        text = self.whole("a block of %d threads may hide the latency of the loads better" % size, source,
                          json.dumps(plan, indent=1) + "\n", last.get("strategy"))
        return said(text)

    def answer(self, asked):
        """What the engineer says, cut off at the cap. Call `give_back` with it when it could not be delivered."""
        reply = self.think(asked)
        if asked.cap and tokens_of(reply.text) > asked.cap:
            reply.text, reply.why = reply.text[: 4 * asked.cap], "length"
        return reply

    def think(self, asked):
        last = asked.messages[-1][1] if asked.messages else ""
        for mark, text in self.marks.items():
            if mark in last:
                return said(text)
        problem = self.problem_of(asked)
        if problem is None:
            return said("I do not know this problem.")
        talk = self.problems[problem]
        self.look_for_verdict(problem, talk, asked)
        if talk.cut:
            turn, cap, tries = talk.cut
            step = talk.steps[turn]
            if asked.cap > cap or tries >= TRUNCATED_TRIES_MAX:
                talk.cut = None
                return said(self.write(problem, step), step=(problem, turn))
            talk.cut = (turn, cap, tries + 1)
            return self.cut_off(problem, step, asked.cap)
        if talk.returned:
            turn = talk.returned.pop(0)
        else:
            turn = talk.turn
            talk.turn += 1
        if turn >= len(talk.steps):
            return self.vary(problem, talk)
        step = talk.steps[turn]
        kind = step["kind"]
        if kind == "refusal":
            return said("I cannot help with this.", "refusal", (problem, turn))
        if kind == "truncated":
            talk.cut = (turn, asked.cap, 1)
            return self.cut_off(problem, step, asked.cap)
        if kind == "no_block":
            return said("Sure! I would keep the row in registers and use wider loads. Shall I write it?", "stop",
                        (problem, turn))
        if kind in ("compile_error", "wrong", "cheat"):
            talk.awaited = (turn, kind, step["told"])
        return said(self.write(problem, step), step=(problem, turn))

    def cut_off(self, problem, step, cap):
        whole = self.write(problem, step)
        return said(whole[: min(4 * max(cap, 1), len(whole) * 2 // 3)], "length")

    def look_for_verdict(self, problem, talk, asked):
        if talk.awaited:
            turn, kind, told = talk.awaited
            talk.awaited = None
            self.seen.append({"problem": problem, "turn": turn, "mistake": kind, "told": told in asked.text()})

    def give_back(self, reply):
        if reply.step:
            problem, turn = reply.step
            self.problems[problem].returned.append(turn)


def used_by(asked, reply, thought=0):
    """Usage of a reply. A prompt whose instructions came before costs the cached price for half of them."""
    read = tokens_of(asked.text())
    written = min(tokens_of(reply.text) + thought, asked.cap) if asked.cap else tokens_of(reply.text) + thought
    if reply.why == "length" and asked.cap:
        written = asked.cap
    return usage(read, written, cached=tokens_of(asked.instructions) // 2, thought=min(thought, written))
