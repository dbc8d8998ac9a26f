"""A lease policy in a process of its own: whoever waits longest goes first, profiles last.

gristmill run --lease-policy 'external(cmd="python3 examples/lease_policy/longest_wait.py")'
"""

import json
import sys

waiting = {}
for line in sys.stdin:
    message = json.loads(line)
    event = message["event"]
    if event == "hello":
        print('{"id":0}', flush=True)
    elif event == "request":
        waiting[message["ticket"]] = message
    elif event in ("cancel", "grant"):
        waiting.pop(message["ticket"], None)
    elif event == "pick":
        fit = [w for w in waiting.values() if w["need"] in message["fits"]]
        fit.sort(key=lambda w: (w["class"] == "profile", w["arrived_ns"], w["ticket"]))
        print(json.dumps({"id": message["id"], "ticket": fit[0]["ticket"] if fit else None}), flush=True)
    elif event == "save":
        print(json.dumps({"id": message["id"], "state": ""}), flush=True)
