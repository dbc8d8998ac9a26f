"""The closed queue of gristmill-bench-lab-speed as SimPy processes: agents think, take one of the
GPUs first come first served, hold it, and think again; thinking and holding are exponential.

    simpy_closed_queue.py AGENTS GPUS THINK_S HOLD_S DURATION_S SEED

Prints one line: wall_s leases mean_wait_s throughput_per_s. Exit code 3: there is no SimPy.
"""

import random
import sys
import time

try:
    import simpy
except ImportError:
    sys.exit(3)


class Totals:
    grants = 0
    leases = 0
    waited = 0.0


def agent(env, gpus, draws, think, hold, totals):
    while True:
        yield env.timeout(draws.expovariate(1 / think))
        asked = env.now
        with gpus.request() as turn:
            yield turn
            totals.waited += env.now - asked
            totals.grants += 1
            yield env.timeout(draws.expovariate(1 / hold))
        totals.leases += 1


def main():
    if len(sys.argv) != 7:
        print(__doc__, file=sys.stderr)
        return 2
    agents, count = int(sys.argv[1]), int(sys.argv[2])
    think, hold, duration = (float(x) for x in sys.argv[3:6])
    began = time.monotonic()
    env = simpy.Environment()
    gpus = simpy.Resource(env, capacity=count)
    totals = Totals()
    for number in range(agents):
        draws = random.Random(f"{sys.argv[6]}-{number}")
        env.process(agent(env, gpus, draws, think, hold, totals))
    env.run(until=duration)
    wall = time.monotonic() - began
    mean = totals.waited / totals.grants if totals.grants else 0.0
    print(f"{wall:.6f} {totals.leases} {mean:.6f} {totals.leases / duration:.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
