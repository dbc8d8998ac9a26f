#!/usr/bin/env python3
"""Turns a reply with choices into a grammar that makes a model server write nothing else.

usage: make_grammar.py FILE.reply [--out FILE.gbnf] [--toml] [--draw N --seed S]

In FILE.reply `@{a|b|c}` stands where a reply may differ; everything else is as it is. The result is a grammar in the
form that llama.cpp takes (GBNF), so that a model with random weights becomes a random proposer whose replies keep the
contract (docs/model-testing.md). `--toml` prints the line `extra_body = …` for a file of models instead, `--draw` prints
N replies as chance would write them, to look at. Standard library only.
"""

import argparse
import json
import random
import re
import sys
from pathlib import Path

CHOICE = re.compile(r"@\{([^{}]*)\}")


def parts(text):
    """[str or list of str]: what is fixed, and the choices between."""
    out, end = [], 0
    for found in CHOICE.finditer(text):
        out += [text[end:found.start()], found.group(1).split("|")]
        end = found.end()
    return [part for part in out + [text[end:]] if part]


def literal(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"%s"' % escaped


def grammar(text):
    words = [literal(p) if isinstance(p, str) else "(%s)" % " | ".join(literal(o) for o in p) for p in parts(text)]
    return "root ::= " + " ".join(words) + "\n"


def draw(text, chance):
    return "".join(p if isinstance(p, str) else chance.choice(p) for p in parts(text))


def extra_body(text):
    """For a file of models: the grammar as a field of each request's body."""
    return json.dumps({"grammar": grammar(text)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("reply", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--toml", action="store_true")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    text = options.reply.read_text(encoding="utf-8")
    if "@{" in CHOICE.sub("", text):
        parser.error("%s: a choice '@{' has no end, or a brace within" % options.reply)
    if options.draw:
        chance = random.Random(options.seed)
        print("\n".join(draw(text, chance) for _ in range(options.draw)))
        return
    # A TOML string within ''' … ''' takes the JSON as it is.
    result = "extra_body = '''%s'''\n" % extra_body(text) if options.toml else grammar(text)
    if options.out:
        options.out.write_text(result, encoding="utf-8")
    else:
        sys.stdout.write(result)


if __name__ == "__main__":
    main()
