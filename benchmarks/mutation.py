"""Do the tests notice a changed line? Mutants of what a guarantee rests on, and who survives.

Run ``python benchmarks/mutation.py`` (an hour or two; ten minutes as below). Coverage notes which
test reaches which line. Then one thing at a time is changed in a copy of the tree: an operator, a
constant, a condition, a statement left out. Of the cases of ``make test-fast`` those that reach it
are run: first those of its file, then of its room, then the quickest, until the time is up. If they
pass, all cases of these tests are.

A survivor is no proof of a missing test: it may compute the same, or be a matter of utility.

Of 84, seed 0, 78 are killed (``--mutants 14 --seconds 15 --jobs 2``, ten minutes): accounting 13 of
14, mechanisms 13, calibration 14, plan 11, parameters 13, codes 14. Those that are left:

- ``tally.py``, ``* ROUNDED`` -> ``/ ROUNDED``: charges less for rounding, by what no test resolves.
- ``exponential.py``, ``2.0**10`` -> ``2.0**11``: a finer lattice.
- ``planning.py``, ``n_alternatives > 1`` -> ``> 2``: a seeded search is refused later, yet unpaid.
- ``plan.py``, 200 -> 201: of letters, after which the first line of a plan is cut.
- ``plan.py``, ``is not None`` -> ``is None``: noticed by ``test_known_prior.py``, later.
- ``parameters.py``, ``"__" in name`` -> ``not in``: had no test, and has one now.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

sys.path.pop(0)  # or benchmarks/coverage.py is taken for the package

import coverage
import pytest
from sklearn.utils import all_estimators

ROOT = Path(__file__).parents[1]
GROUPS = {
    "calibration": ["sensitivity/calibration.py", "sensitivity/estimate.py"],
    "mechanisms": ["mechanisms"],
    "accounting": ["accounting"],
    "plan": ["plan.py", "planning"],
    "codes": ["codes", "core/code.py", "core/spectrum.py"],
    "parameters": ["estimators/parameters.py"],
}
PAIRS = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot),
    (ast.And, ast.Or), (ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div),
    ("min", "max"), ("any", "all"), ("ceil", "floor"),
]  # fmt: skip
SWAPS = dict(PAIRS) | {b: a for a, b in PAIRS} | {ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult}
TIME_LIMIT = 60
"""Of the tests on one mutant, in seconds of a processor: if they go on, they have noticed."""
SMALL = "tests/sensitivity/test_calibration.py"
PYTEST = ["-q", "-n0", "-p", "no:randomly", "--hypothesis-profile", "fast"]


def changed(node: ast.AST) -> ast.AST | None:
    """Return what is to stand in the place of a node."""
    match node:
        case ast.Compare(left, [operator], right):
            return ast.Compare(left, [SWAPS[type(operator)]()], right)
        case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
            return ast.BinOp(left, SWAPS[type(operator)](), right)
        case ast.BoolOp(operator, values):
            return ast.BoolOp(SWAPS[type(operator)](), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            return ast.Constant(value + 1 if isinstance(value, int) else 1.1 * value or 0.1)
        case ast.If(test):
            return ast.UnaryOp(ast.Not(), test)
        case ast.Name(name) if name in SWAPS:
            return ast.Name(SWAPS[name])
        case ast.Attribute(owner, name) if name in SWAPS:
            return ast.Attribute(owner, SWAPS[name])
        case ast.Raise() | ast.AugAssign() | ast.Expr(ast.Call()):
            return ast.Pass()
    return None


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all that may be changed, which is neither text nor an annotation."""
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.Raise):
            continue
        for child in field if isinstance(field, list) else [field]:
            text = isinstance(child, ast.JoinedStr) or getattr(child, "arg", "") == "stacklevel"
            if isinstance(child, ast.AST) and not text:
                yield child
                yield from parts(child)


def mutants(path: Path) -> Iterator[tuple[int, str, bytes]]:
    """Yield for each mutant of a file the line, what is changed, and the whole new text."""
    lines = path.read_bytes().splitlines(keepends=True)
    starts, text = [0, *accumulate(map(len, lines))], b"".join(lines)
    for node in parts(ast.parse(text)):
        if new := changed(node):
            place = node.test if isinstance(node, ast.If) else node
            first = starts[place.lineno - 1] + place.col_offset
            last = starts[place.end_lineno - 1] + place.end_col_offset
            code = "pass" if isinstance(new, ast.Pass) else f"({ast.unparse(new)})"
            told = f"{ast.unparse(place)[:70]}  ->  {code[:70]}"
            yield place.lineno, told, text[:first] + code.encode() + text[last:]


def reached(folder: Path, tests: list[str]) -> tuple[coverage.CoverageData, dict[str, float]]:
    """Run the tests, unless it was done; return which lines each reaches, and how long it takes."""
    file, log, seconds = folder / "coverage", folder / "durations.txt", {}
    command = [sys.executable, "-m", "pytest", *PYTEST, "-vv", "--durations", "0", "--cov"]
    command += ["--cov-context", "test", "--cov-report", "", "-m", "not slow", "--every", "6"]
    if not log.exists():
        environment = os.environ | {"COVERAGE_FILE": str(file)}
        run = subprocess.run(
            [*command, *tests], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        log.write_text(run.stdout)
    for taken, name in re.findall(r"^([\d.]+)s (?:call|setup) +(.+)$", log.read_text(), re.M):
        seconds[name] = seconds.get(name, 0.0) + float(taken)
    data = coverage.CoverageData(str(file))
    data.read()
    return data, seconds


def reaching(
    data: coverage.CoverageData, seconds: dict[str, float], file: Path, line: int, most: float
) -> list[str]:
    """Return tests that reach a line, in the order in which they are run."""
    contexts = data.contexts_by_lineno(str(file))
    here = set(next((contexts[i] for i in range(line, 0, -1) if i in contexts), []))
    if here <= {""}:  # reached by the import: any test of the file may see it
        here = set().union(*contexts.values())
    room, name = f"/{file.parent.name}/", f"test_{file.stem}.py"

    def order(test: str) -> tuple[bool, bool, bool, float]:
        doctest = test.startswith("skdp")  # last: collected first, it would import its module twice
        return doctest, name not in test, room not in test, seconds.get(test, 0.0)

    tests = sorted({name.partition("|")[0] for name in here} - {""}, key=order)
    passed = accumulate(seconds.get(test, 0.0) for test in tests)
    return [test for test, until in zip(tests, passed, strict=True) if until <= most] or tests[:1]


def copy_tree(folder: Path) -> None:
    """Make the copy that this process changes. Its bytecode counts by the time of each source."""
    global tree
    unneeded = shutil.ignore_patterns(".venv*", ".git", "_build")
    tree = Path(shutil.copytree(ROOT, folder / f"tree-{os.getpid()}", ignore=unneeded))
    os.environ["PYTHONPATH"] = str(tree)  # for tests that start a process
    os.chdir(tree)


def passes(names: list[str], limit: int) -> bool:
    """Return whether tests pass in a child of this process, which has imported what takes long."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        signal.alarm(10 * limit)  # of all that they wait for, too
        sys.path.insert(0, str(tree))
        sys.dont_write_bytecode = True
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os._exit(int(pytest.main([*PYTEST, "-x", "-p", "no:cacheprovider", *names])))
    return os.waitpid(child, 0)[1] == 0


def survivor(mutant: tuple[Path, int, str, bytes, list[str]]) -> str | None:
    """Return what is said of a mutant, if all tests pass with it."""
    file, line, told, text, tests = mutant
    place = tree / file.relative_to(ROOT)
    place.write_bytes(text)
    whole = list(dict.fromkeys(test.partition("[")[0] for test in tests))
    left = not tests or (passes(tests, TIME_LIMIT) and passes(whole, 10 * TIME_LIMIT))
    shutil.copy2(file, place)
    return f"{file.relative_to(ROOT)}:{line}: {told} [{len(tests)} tests]" if left else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--mutants", type=int, default=27, help="of each group")
    parser.add_argument("--seed", type=int, default=0, help="of their choice")
    parser.add_argument("--seconds", type=float, default=60, help="of tests on a mutant")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--folder", type=Path, help="keeps which test reaches what, and reuses it")
    parser.add_argument("--small", action="store_true", help="two of one file, by its own tests")
    options = parser.parse_args()
    tests = []
    if options.small:
        GROUPS["calibration"], tests = GROUPS["calibration"][:1], [SMALL]
        options.groups, options.mutants = ["calibration"], 2
    folder = options.folder or Path(tempfile.mkdtemp())
    data, seconds = reached(folder, tests)
    all_estimators()  # imported once, and not by each child
    with multiprocessing.get_context("fork").Pool(options.jobs, copy_tree, [folder]) as pool:
        for group in options.groups or GROUPS:
            paths, left = [ROOT / "skdp" / name for name in GROUPS[group]], 0
            files = [file for path in paths for file in sorted(path.rglob("*.py")) or [path]]
            found = [(file, *mutant) for file in files for mutant in mutants(file)]
            chosen = random.Random(options.seed).sample(found, options.mutants)
            work = [(*each, reaching(data, seconds, *each[:2], options.seconds)) for each in chosen]
            for said in pool.imap(survivor, work):
                if said:
                    print(said, flush=True)
                    left += 1
            print(f"{group}: {options.mutants - left} of {options.mutants} killed", flush=True)
            if options.small and left == options.mutants:
                sys.exit("No mutant was killed.")


if __name__ == "__main__":
    main()
