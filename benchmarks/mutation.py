"""Do the tests notice a changed line? Mutants of what a guarantee rests on, and who survives.

Run ``python benchmarks/mutation.py`` (an hour or two). The tests are run once while coverage notes
which of them reaches which line. Then one thing at a time is changed in a copy of the tree: a
comparison, an operator, a constant, a condition, a statement left out. The tests that reach the
line are run on it, the quickest first, until one fails. What an error says stays as it is.

A survivor is no proof of a missing test: it may compute the same, or be a matter of utility.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.pop(0)  # or benchmarks/coverage.py is taken for the package

import coverage
import numpy as np
import pytest
import sklearn.utils.estimator_checks  # noqa: F401, each fork would import it anew

ROOT = Path(__file__).parents[1]
GROUPS = {
    "calibration": ["sensitivity/calibration.py", "sensitivity/estimate.py"],
    "mechanisms": ["mechanisms"],
    "accounting": ["accounting"],
    "plan": ["plan.py"],
    "codes": ["codes", "core/code.py"],
    "parameters": ["estimators/parameters.py"],
}
SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "ceil": "floor", "floor": "ceil", "any": "all", "all": "any"}
PYTEST = ["-q", "-n0", "-p", "no:randomly", "--hypothesis-profile", "fast"]
now = 10**9


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
        case ast.Name(name) if name in NAMES:
            return ast.Name(NAMES[name])
        case ast.Attribute(owner, name) if name in NAMES:
            return ast.Attribute(owner, NAMES[name])
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
    starts, text = [0, *np.cumsum([len(line) for line in lines])], b"".join(lines)
    for node in parts(ast.parse(text)):
        if new := changed(node):
            place = node.test if isinstance(node, ast.If) else node
            first = starts[place.lineno - 1] + place.col_offset
            last = starts[place.end_lineno - 1] + place.end_col_offset
            code = "pass" if isinstance(new, ast.Pass) else f"({ast.unparse(new)})"
            told = f"{ast.unparse(place)[:70]}  ->  {code[:70]}"
            yield place.lineno, told, text[:first] + code.encode() + text[last:]


def reached(tests: list[str], folder: Path) -> tuple[coverage.CoverageData, dict[str, float]]:
    """Run the tests; return which lines each of them reaches, and how long it takes."""
    file, seconds = str(folder / "coverage"), {}
    command = [sys.executable, "-m", "pytest", *PYTEST, "-vv", "--durations", "0", "--cov",
               "--cov-context", "test", "--cov-report", ""]  # fmt: skip
    output = subprocess.run([*command, *tests], cwd=ROOT, capture_output=True, text=True,
                            env=os.environ | {"COVERAGE_FILE": file}).stdout  # fmt: skip
    for taken, name in re.findall(r"^([\d.]+)s (?:call|setup) +(.+)$", output, re.M):
        seconds[name] = seconds.get(name, 0.0) + float(taken)
    data = coverage.CoverageData(file)
    data.read()
    return data, seconds


def write(place: Path, text: bytes) -> None:
    """Write a file with a time of its own: bytecode is taken for that of any text as long."""
    global now
    place.write_bytes(text)
    now += 1
    os.utime(place, (now, now))


def survives(tree: Path, names: list[str], limit: float) -> bool:
    """Return whether all tests pass in a tree; a fork runs them, and has the libraries already."""
    if not (process := os.fork()):
        os.setsid()
        os.chdir(tree)
        sys.path.insert(0, str(tree))
        os.environ["PYTHONPATH"] = str(tree)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os._exit(pytest.main([*PYTEST, "-x", *names]))
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return False


def main() -> None:
    """Print each survivor, and for each group how many mutants were killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=25, help="of each group")
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--tests", nargs="+", default=["-m", "not slow", "tests"])
    parser.add_argument("--seconds", type=float, default=20, help="of tests on each mutant")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder, n_killed = Path(tempfile.mkdtemp()), 0
    data, seconds = reached(options.tests, folder)
    unneeded = shutil.ignore_patterns(".venv*", ".git", "build", "_build")
    tree = Path(shutil.copytree(ROOT, folder / "tree", ignore=unneeded))
    for group in options.groups:
        paths, left = [ROOT / "skdp" / name for name in GROUPS[group]], 0
        files = [file for path in paths for file in sorted(path.rglob("*.py")) or [path]]
        found = [(file, *mutant) for file in files for mutant in mutants(file)]
        for file, line, told, text in random.Random(options.seed).sample(found, options.mutants):
            contexts = data.contexts_by_lineno(str(file))
            here = set(next((contexts[i] for i in range(line, 0, -1) if i in contexts), []))
            if here <= {""}:  # reached by the import: any test of the file may see it
                here = set().union(*contexts.values())
            names = {name.partition("|")[0] for name in here} - {""}
            ordered = sorted(names, key=lambda name: seconds.get(name, 0.0))
            total = np.cumsum([seconds.get(name, 0.0) for name in ordered])
            chosen = [name for name, t in zip(ordered, total, strict=True) if t < options.seconds]
            place = tree / file.relative_to(ROOT)
            write(place, text)
            if not chosen or survives(tree, chosen, 60 + 3 * options.seconds):
                print(f"{place.relative_to(tree)}:{line}: {told} [{len(chosen)} tests]", flush=True)
                left += 1
            write(place, file.read_bytes())
        n_killed += options.mutants - left
        print(f"{group}: {options.mutants - left} of {options.mutants} killed", flush=True)
    print(f"{n_killed} of {options.mutants * len(options.groups)} killed")


if __name__ == "__main__":
    main()
