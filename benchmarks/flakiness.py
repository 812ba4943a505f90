"""Which tests, examples and printed sessions depend on chance, and does one of them ever fail?

Everything is run once while two sources of chance are watched: noise from the operating system's
generator, and samplers without a seed. What has drawn from one of them is then run again and
again, each time in a new process. A failure in 200 runs is likely from a chance of failing of 1 %
on; that it is below 1e-9 has to be seen in the assertion.

This file is also the plugin of pytest that watches.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import secrets
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from skdp.mechanisms.noise import OperatingSystemBytes

ROOT = Path(__file__).parents[1]
LOG = "SKDP_CHANCE_LOG"
EXAMPLES = "examples/"
SMALL = ["tests/mechanisms/test_third_party.py", "skdp/mechanisms/laplace.py"]

drawn: set[str] = set()


def watch() -> None:
    """Note each draw from a source of chance, in this process."""

    def noted(function, source):
        def draw(*args):
            drawn.add(source)
            return function(*args)

        return draw

    OperatingSystemBytes.bytes = noted(OperatingSystemBytes.bytes, "noise")
    secrets.randbits = noted(secrets.randbits, "sampler")


def log(name: str, seconds: float) -> None:
    """Append what was run to the log, if chance had a part in it."""
    if drawn:
        with open(os.environ[LOG], "a", encoding="utf-8") as file:
            file.write(f"{name}\t{seconds:.2f}\t{' '.join(sorted(drawn))}\n")
    drawn.clear()


class Watcher:
    """The plugin: watches each test from its fixtures to its end."""

    def pytest_runtest_logstart(self, nodeid):
        """Start to watch."""
        drawn.clear()
        self.start = time.perf_counter()

    def pytest_runtest_teardown(self, item):
        """Say what was drawn."""
        log(item.nodeid, time.perf_counter() - self.start)


def pytest_configure(config):
    """Watch in every process of pytest."""
    if LOG in os.environ:
        watch()
        config.pluginmanager.register(Watcher())


def run_example(path: str) -> None:
    """Run one example, and watch it if there is a log."""
    if LOG in os.environ:
        watch()
    start = time.perf_counter()
    runpy.run_path(path, run_name="__main__")
    if LOG in os.environ:
        log(path, time.perf_counter() - start)


def pytest(arguments: list[str], environment: dict[str, str]) -> str:
    """Run pytest in a new process and return what it says."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "flakiness", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile", "random"]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    ).stdout


def example(path: str, environment: dict[str, str]) -> bool:
    """Run an example in a new process, warnings as errors, and tell whether it ended well."""
    command = [sys.executable, "-W", "error", __file__, "--example", path]
    return not subprocess.run(command, cwd=ROOT, env=environment, capture_output=True).returncode


def failed(output: str) -> list[str]:
    """Return the tests that failed, from the summary of pytest."""
    return re.findall(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", output, re.M)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", help="what to look at; all by default")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", default="auto", help="processes of pytest, as for -n")
    parser.add_argument("--small", action="store_true", help="two runs of two files")
    parser.add_argument("--example", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.example:
        run_example(options.example)
        return
    if options.small:  # the last one draws noise from the operating system
        options.paths, options.runs, options.jobs = SMALL, 2, "0"
    paths = options.paths or ["tests", "skdp", *sorted(map(str, Path(ROOT).glob("examples/*.py")))]
    scripts = [str(Path(path).resolve()) for path in paths if EXAMPLES in path]
    tests = [path for path in paths if EXAMPLES not in path]
    path = os.pathsep.join(
        [str(Path(__file__).parent), str(ROOT), os.environ.get("PYTHONPATH", "")]
    )
    environment = os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg"}
    file = ROOT / "build" / "chance.tsv"
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    watching = environment | {LOG: str(file)}

    failures: Counter[str] = Counter()
    if tests:
        failures.update(failed(pytest(["-n", options.jobs, *tests], watching)))
    failures.update(script for script in scripts if not example(script, watching))
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    chosen = {name: float(seconds) for name, seconds, _ in lines}
    print(f"{len(chosen)} depend on chance, {sum(chosen.values()):.0f} s a run: {file}", flush=True)
    names = [name for name in chosen if EXAMPLES not in name]
    again = [script for script in scripts if script in chosen]
    for run in range(2, options.runs + 1):
        bad = [script for script in again if not example(script, environment)]
        if names:
            bad += failed(pytest(["-n", options.jobs, *names], environment))
        failures.update(bad)
        print(f"run {run} of {options.runs}: {', '.join(bad) or 'none failed'}", flush=True)
    for name, count in failures.most_common():
        print(f"{count} of {options.runs} runs failed: {name}")
    print(f"{len(failures)} failed in {options.runs} runs of {len(chosen)}")
    sys.exit(bool(failures) or (options.small and not chosen))


if __name__ == "__main__":
    main()
