"""A rule of the planner in a process of its own: the problem that was given the fewest attempts.

gristmill run --planner 'external(cmd="python3 examples/planner_policy/fewest_given.py")'
"""

import json
import sys

given, eligible = {}, set()
for line in sys.stdin:
    message = json.loads(line)
    event, problem = message["event"], message.get("problem")
    if event == "hello":
        print('{"id":0}', flush=True)
    elif event == "problem":
        given[problem] = message["given"]
        if message["eligible"]:
            eligible.add(problem)
    elif event == "eligible":
        (eligible.add if message["eligible"] else eligible.discard)(problem)
    elif event == "given":
        given[problem] += 1
    elif event == "pick":
        best = min(eligible, key=lambda p: (given[p], p), default=None)
        print(json.dumps({"id": message["id"], "problem": best}), flush=True)
