"""The books of a test server: what it was asked, what it answered and what it would bill.

A request is written down, and billed, before its last events are sent, as a provider does it: a client that is cut off
then owes money that it may not know of. With a file the books survive the server, so that they stay true when a test
kills it. Keys are kept as hashes only: the books may be read by anybody.
"""

import hashlib
import json
import os


class books:
    def __init__(self, path=None, input_price=0, cached_price=0, output_price=0):
        """Prices in 10^-9 USD a token."""
        self.prices = (input_price, cached_price, output_price)
        self.lines = []
        self.file = None
        self.asked = 0
        if path:
            if os.path.exists(path):
                with open(path, encoding="utf-8") as old:
                    # A server that was killed may have left half a line.
                    self.lines = [json.loads(line) for line in old if line.endswith("\n")]
            self.file = open(path, "a", encoding="utf-8")
        # Ids of a server that was started again are others than those of its former life.
        self.life = len(self.lines)

    @staticmethod
    def name_of(key):
        return hashlib.sha256(key.encode()).hexdigest()[:12] if key else "none"

    def bill(self, used):
        whole, cached, out = self.prices
        return (used.read - used.cached) * whole + used.cached * cached + used.written * out

    def next_id(self):
        self.asked += 1
        return "req-%d-%d" % (self.life, self.asked)

    def write(self, number, key, path, fault, status, used, told):
        """`used` is None when nothing is billed; `told`: the usage stands in the answer."""
        line = {"id": number, "key": self.name_of(key), "path": path, "fault": fault, "status": status,
                "input": 0, "cached": 0, "output": 0, "nano_usd": 0, "told": bool(told)}
        if used:
            line.update(input=used.read, cached=used.cached, output=used.written, nano_usd=self.bill(used))
        self.lines.append(line)
        if self.file:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()

    def summary(self):
        """Sums for each key and over all, and each request."""
        keys = {}
        for line in self.lines:
            sums = keys.setdefault(line["key"], {"requests": 0, "billed": 0, "input": 0, "cached": 0, "output": 0,
                                                 "nano_usd": 0, "told": 0, "told_nano_usd": 0, "faults": {}})
            sums["requests"] += 1
            sums["billed"] += line["nano_usd"] > 0 or line["input"] > 0
            for name in ("input", "cached", "output", "nano_usd"):
                sums[name] += line[name]
            sums["told"] += line["told"]
            sums["told_nano_usd"] += line["nano_usd"] if line["told"] else 0
            fault = line["fault"] or "none"
            sums["faults"][fault] = sums["faults"].get(fault, 0) + 1
        return {"schema": "gristmill.test-books/1", "requests": len(self.lines), "keys": keys, "lines": self.lines}
