"""What importing skdp adds to importing scikit-learn's base.

Each of many fresh interpreters imports `sklearn.base`, then skdp, both compiled before, and times
both; the table shows the medians over the interpreters, and the median of the ratios. Processor
time changes less than the clock with other load on the machine. Some versions of scikit-learn
import pandas where it is installed, which takes them longer, so there is a second line with pandas
hidden: it is the stricter one. Then come the modules of the second import that take most of it: the
least that each took, as other load can only add to it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from statistics import median

TIMED = """
import sys
sys.modules.update(dict.fromkeys({hidden!r}))
from time import perf_counter, process_time
start, busy = perf_counter(), process_time()
import sklearn.base
middle, busy_middle = perf_counter(), process_time()
import skdp
end, busy_end = perf_counter(), process_time()
print(middle - start, end - middle, busy_middle - busy, busy_end - busy_middle)
"""
# A line of python -X importtime: microseconds of the module itself, with those inside it, name.
LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")


def run(cache, *arguments):
    """Return what a fresh interpreter prints, and its log; it finds compiled modules in `cache`."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout, done.stderr


def added(cache, n_repetitions, hidden):
    """Return the medians of milliseconds and ratios, by the clock and in processor time."""
    code = TIMED.format(hidden=hidden)
    run(cache, "-c", code)  # the first compiles what it imports
    rows = [list(map(float, run(cache, "-c", code)[0].split())) for _ in range(n_repetitions)]
    clock = [(1e3 * base, 1e3 * own, own / base) for base, own, _, _ in rows]
    busy = [(1e3 * base, 1e3 * own, own / base) for _, _, base, own in rows]
    return [list(map(median, zip(*times, strict=True))) for times in (clock, busy)]


def costliest(cache, n_repetitions):
    """Return the least milliseconds of each module that the second import loads, itself only."""
    times = defaultdict(list)
    for _ in range(n_repetitions):
        _, log = run(cache, "-X", "importtime", "-c", "import sklearn.base\nimport skdp")
        found = LINE.findall(log)
        # a module is logged after what it imports, so what comes behind the base is our own
        last = max(i for i, (_, name) in enumerate(found) if name == "sklearn.base")
        for microseconds, name in found[last + 1 :]:
            times[name].append(int(microseconds) / 1e3)
    least = {name: min(values) for name, values in times.items()}
    return dict(sorted(least.items(), key=lambda item: -item[1]))


def report(cache, options):
    """Time the imports with the compiled modules in one place, and print both tables."""
    cases = {"as installed": []}
    if importlib.util.find_spec("pandas"):
        cases["without pandas"] = ["pandas"]
    print(f"{'':16}{'time':>12}{'sklearn.base':>15}{'skdp':>12}{'ratio':>9}")
    for name, hidden in cases.items():
        for kind, (base, own, ratio) in zip(
            ("clock", "processor"), added(cache, options.repetitions, hidden), strict=True
        ):
            print(f"{name:16}{kind:>12}{base:>12.1f} ms{own:>9.1f} ms{ratio:>9.3f}")

    modules = costliest(cache, options.repetitions)
    print(f"\n{len(modules)} modules beside those of sklearn.base, the costliest first:")
    for name in list(modules)[: options.modules]:
        print(f"{name:50}{modules[name]:>8.2f} ms")


def main():
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=31)
    parser.add_argument("--modules", type=int, default=10, help="how many modules to list")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as cache:
        report(cache, options)


if __name__ == "__main__":
    main()
