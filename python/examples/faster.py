"""What NumPy gains from the pool on this machine: times with it over times without, in turns.

    python faster.py [--megabytes 8 32] [--rounds 40] [--pool 1G]

Each round times every program once with the pool and once without, in random order, in this one process. A
ratio is the median over the rounds of (without / with), with its 95 % bootstrap interval: above 1 is faster
with the pool. "Without" is NumPy on the process's own malloc: start this with GLIBC_TUNABLES, or under another
allocator's LD_PRELOAD, to compare with that one.
"""

import argparse
import random
import statistics
import time

import cachewise.numpy
import numpy as np


def temporaries(n, a, b):
    return a * b + (a - b) * 0.5 - a * 2.0


def zeros_plus_one(n, a, b):
    return np.zeros(n) + 1


def zeros_touched_once(n, a, b):
    table = np.zeros(n)
    table[:: 4096 // 8] = 1  # once a page
    return table


def copies(n, a, b):
    return a.copy()


PROGRAMS = [temporaries, zeros_plus_one, zeros_touched_once, copies]


def timed(program, n, a, b):
    begun = time.perf_counter_ns()
    program(n, a, b)
    return time.perf_counter_ns() - begun


def interval(ratios, draws=2000):
    """The median's 95 % interval by bootstrap."""
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 8, 64], help="of one array")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--pool", default="1G")
    options = parser.parse_args()
    print(f"NumPy {np.__version__}, {options.rounds} rounds, pool of {options.pool}")
    print(f"{'program':<20} {'MB':>4} {'without ms':>11} {'with ms':>9}  times as fast (95 % interval)")
    for megabytes in options.megabytes:
        n = megabytes * 1_000_000 // 8
        a, b = np.random.default_rng(1).random((2, n))
        for program in PROGRAMS:
            rounds = []
            for _ in range(options.rounds + 3):
                times = {}
                for pooled in random.sample([True, False], 2):
                    if pooled:
                        with cachewise.numpy.enable(options.pool):
                            times[pooled] = timed(program, n, a, b)
                    else:
                        times[pooled] = timed(program, n, a, b)
                rounds.append(times)
            rounds = rounds[3:]  # the first ones fill pool and heap
            ratios = [times[False] / times[True] for times in rounds]
            low, high = interval(ratios)
            without, with_it = (statistics.median(times[key] for times in rounds) / 1e6 for key in (False, True))
            print(
                f"{program.__name__:<20} {megabytes:>4} {without:>11.3f} {with_it:>9.3f}  "
                f"{statistics.median(ratios):.3f} ({low:.3f} .. {high:.3f})"
            )
    print("pool:", ", ".join(f"{name} {value}" for name, value in cachewise.numpy.stats().items()))


if __name__ == "__main__":
    main()
