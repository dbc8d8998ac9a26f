"""What the runs of this folder work on: small problems of our own and a fixed list of candidates for them.

Every candidate is right, wrong or refused by the compiler, and each is another text, so that a run has exactly one
verdict for each and two runs can be compared verdict by verdict.
"""

import json
import shutil
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
CANDIDATES = SOURCE / "tests" / "corpus" / "candidates"


class fixed_work:
    """`each` candidates for each problem, in `folder`; rows x classes decide how long one is measured on the mock.

    Of a kind there are `texts` source texts for a problem, and as many plans as it takes: each text is compiled on
    some node, and a candidate whose text is known already only has to be measured.
    """

    def __init__(self, folder, each=12, problems=("tiny_a", "tiny_b"), rows=9, classes=33, texts=3):
        self.folder = Path(folder)
        self.texts = texts
        self.problems = list(problems)
        self.candidates = []
        for number, name in enumerate(self.problems):
            to = self.folder / name
            to.mkdir(parents=True)
            for file in ("definition.json", "graph.json"):
                shutil.copy(SOURCE / "kernels" / "builtin" / "softmax" / file, to / file)
            workload = {"axes": {"rows": rows + number, "classes": classes}, "inputs": {"logits": {"type": "random"}},
                        "uuid": "only", "tolerance": {"max_atol": 1e-6, "max_rtol": 1e-4}}
            (to / "workload.jsonl").write_text(json.dumps(workload) + "\n")
            for one in range(each):
                # One in six is wrong and one in six does not compile: verdicts of every kind must survive.
                kind = {1: "wrong", 4: "does_not_compile"}.get(one % 6, "right")
                self.give(name, kind, one)

    def give(self, problem, kind, number):
        base = self.folder / ("%s_%s_%d" % (problem, kind, number))
        text = (CANDIDATES / (kind + ".cu")).read_text() + "// %s %d\n" % (problem, number % self.texts)
        plan = json.loads((CANDIDATES / (kind + ".plan.json")).read_text())
        # Room that the kernel does not use: another plan, and so another candidate, with the same code.
        plan["variants"][0]["steps"][0]["shared"] = 16 * number
        base.with_name(base.name + ".cu").write_text(text)
        base.with_name(base.name + ".plan.json").write_text(json.dumps(plan))
        self.candidates.append("%s=%s.cu" % (problem, base))

    def flags(self):
        """Of `gristmill run`: the problems, the candidates, and as many attempts as there are candidates."""
        out = [str(self.folder / name) for name in self.problems]
        out += ["--proposer", "scripted", "--seed", "1", "--oracle", "native", "--toolchain", "clang", "--budget",
                "%dattempts" % len(self.candidates)]
        for one in self.candidates:
            out += ["--candidate", one]
        return out
