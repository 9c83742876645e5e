#!/usr/bin/env python3
"""How often `cachewise compare` is right: comparisons without a difference, and with a planted one.

    trial.py null N        N comparisons of four programs with themselves, every other one beside a neighbour
    trial.py planted N     N comparisons with 3 % more work in the new one
    trial.py memory N      N with 8 MiB more at the peak, and N without
    trial.py rows N        N of 40 Google benchmarks with themselves, and N with one of them 5 % slower
    trial.py others N      N pairs without a difference and N with 3 %, by what people use: the same runs for all

The command is `cachewise` of PATH, or $CACHEWISE. A line of JSON for each comparison goes to standard output.
"""
import json, os, random, statistics, subprocess, sys, tempfile, threading, time
from pathlib import Path

HERE = Path(__file__).parent
COMMAND = os.environ.get("CACHEWISE", "cachewise")
BUDGET = os.environ.get("BUDGET", "60s")
WORK = Path(tempfile.mkdtemp()) / "work"
# Thousandths of the work of a program of some 20, 60, 150 and 400 ms.
PARTS = [200, 600, 1500, 4000]


class Neighbour:
    """Takes a CPU for a while, then rests, as builds do."""

    def __enter__(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over.is_set():
            busy = subprocess.Popen([WORK, "1000000"], stdout=subprocess.DEVNULL)
            self.over.wait(random.uniform(0.2, 2))
            busy.kill()
            busy.wait()
            self.over.wait(random.uniform(0.2, 2))

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Quiet:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def compare(old, new, *options):
    begun = time.time()
    words = [COMMAND, "compare", "--json", "-", "--budget", BUDGET, *options, old, new]
    done = subprocess.run(words, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        found = {"answer": "failed", "told": done.stderr[-300:], "lines": []}
    judged = next((line for line in found["lines"] if line["judged"]), {})
    return {
        "answer": found["answer"], "status": done.returncode, "seconds": round(time.time() - begun, 1),
        "pairs": found.get("pairs"), "ratio": judged.get("ratio"), "figure": judged.get("name"),
        "load": os.getloadavg()[0], **({"told": found["told"]} if "told" in found else {}),
        "different": [l["name"] for l in found["lines"] if l["judged"] and l["verdict"] in ("slower", "faster")],
    }


def report(kind, **found):
    print(json.dumps({"kind": kind, **found}), flush=True)


def timed(count, factor, kind):
    for at in range(count):
        parts = PARTS[at % len(PARTS)]
        with Neighbour() if at // len(PARTS) % 2 else Quiet():
            found = compare(f"{WORK} {parts}", f"{WORK} {round(parts * factor)}")
        report(kind, parts=parts, beside=bool(at // len(PARTS) % 2), **found)


def memory(count):
    for at in range(count):
        report("memory", more=8, **compare(f"{WORK} 100 16", f"{WORK} 100 24", "--judge", "peak"))
        report("memory", more=0, **compare(f"{WORK} 100 16", f"{WORK} 100 16", "--judge", "peak"))


BENCHMARKS = """
#include <benchmark/benchmark.h>
#include <cstring>
#include <vector>
static void run(benchmark::State &state) {
    std::vector<char> from(1024 + 97 * state.range(0)), to(from.size());
    int times = 20 + (state.range(0) == 17 ? SLOWER : 0);
    for (auto _ : state)
        for (int at = 0; at < times; at++) {
            std::memcpy(to.data(), from.data(), from.size());
            benchmark::DoNotOptimize(to.data());
            benchmark::ClobberMemory();
        }
}
BENCHMARK(run)->DenseRange(0, 39)->MinTime(0.01);
BENCHMARK_MAIN();
"""


def rows(count):
    programs = []
    for slower in (0, 1):
        source = WORK.with_name(f"rows{slower}.cpp")
        source.write_text(BENCHMARKS)
        program = WORK.with_name(f"rows{slower}")
        words = ["g++", "-O2", f"-DSLOWER={slower}", source, "-o", program, "-lbenchmark", "-lpthread"]
        subprocess.run(words, check=True)
        programs.append(f"{program} --benchmark_format=json")
    old, slow = programs
    for at in range(count):
        for slower, new in ((False, old), (True, slow)):
            report("rows", slower=slower, **compare(old, new, "--figures", "google-benchmark", "--margin", "1"))


def run_once(parts):
    begun = time.perf_counter()
    subprocess.run([WORK, str(parts)], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def others(count):
    """Ten runs of each, in order, as the tools do; the words of each tool from them."""
    from scipy import stats
    for at in range(2 * count):
        planted = at % 2
        new = round(600 * (1.03 if planted else 1))
        with Neighbour() if at // 2 % 2 else Quiet():
            hyperfine = WORK.with_name("hyperfine.json")
            words = ["hyperfine", "-N", "--warmup", "1", "--runs", "10", "--export-json", hyperfine, f"{WORK} 600", f"{WORK} {new}"]
            subprocess.run(words, capture_output=True, check=True)
            [a, b] = [result["times"] for result in json.loads(hyperfine.read_text())["results"]]
            found = compare(f"{WORK} 600", f"{WORK} {new}")
        means = statistics.mean(b) / statistics.mean(a)
        files = []
        for name, times in (("old", a), ("new", b)):
            file = WORK.with_name(f"{name}.txt")
            file.write_text("".join(f"BenchmarkWork 1 {round(t * 1e9)} ns/op\n" for t in times))
            files.append(file)
        benchstat = subprocess.run(["benchstat", *files], capture_output=True, text=True).stdout
        line = next((line for line in benchstat.splitlines() if line.startswith("Work")), "")
        words = {
            "means over 1 %": abs(means - 1) > 0.01,
            "Welch": bool(stats.ttest_ind(a, b, equal_var=False).pvalue < 0.05),
            "U test": bool(stats.mannwhitneyu(a, b).pvalue < 0.05),
            "benchstat": "~" not in line and line != "",
        }
        right = {name: said and (means > 1) for name, said in words.items()}
        report("others", planted=bool(planted), beside=bool(at // 2 % 2), means=means, said=words, slower=right, **found)


if __name__ == "__main__":
    kind, count = sys.argv[1], int(sys.argv[2])
    subprocess.run(["cc", "-O2", "-o", WORK, HERE / "work.c"], check=True)
    {
        "null": lambda: timed(count, 1, "null"), "planted": lambda: timed(count, 1.03, "planted"),
        "memory": lambda: memory(count), "rows": lambda: rows(count), "others": lambda: others(count),
    }[kind]()
