"""Do the tests notice a changed line? Mutants of what a guarantee rests on, and who survives.

Run ``python benchmarks/mutation.py`` (an hour or two). Coverage notes which test reaches which
line. Then one thing at a time is changed in a copy of the tree: an operator, a constant, a
condition, a statement left out. The tests that reach it are run, the quickest first.

A survivor is no proof of a missing test: it may compute the same, or be a matter of utility.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

sys.path.pop(0)  # or benchmarks/coverage.py is taken for the package

import coverage

ROOT = Path(__file__).parents[1]
GROUPS = {
    "calibration": ["sensitivity/calibration.py", "sensitivity/estimate.py"],
    "mechanisms": ["mechanisms"],
    "accounting": ["accounting"],
    "plan": ["plan.py", "planning.py"],
    "codes": ["codes", "core/basis.py", "core/code.py", "core/spectrum.py"],
    "parameters": ["estimators/parameters.py"],
}
PAIRS = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot),
    (ast.And, ast.Or), (ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div),
    ("min", "max"), ("any", "all"), ("ceil", "floor"),
]  # fmt: skip
SWAPS = dict(PAIRS) | {b: a for a, b in PAIRS} | {ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult}
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


def reached(folder: Path) -> tuple[coverage.CoverageData, dict[str, float]]:
    """Run the tests; return which lines each of them reaches, and how long it takes."""
    file, seconds = str(folder / "coverage"), {}
    command = [sys.executable, "-m", "pytest", *PYTEST, "-vv", "--durations", "0", "--cov",
               "--cov-context", "test", "--cov-report", "", "-m", "not slow", "tests"]  # fmt: skip
    environment = os.environ | {"COVERAGE_FILE": file}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    for taken, name in re.findall(r"^([\d.]+)s (?:call|setup) +(.+)$", run.stdout, re.M):
        seconds[name] = seconds.get(name, 0.0) + float(taken)
    data = coverage.CoverageData(file)
    data.read()
    return data, seconds


def survives(tree: Path, names: list[str]) -> bool:
    """Return whether all tests pass in a tree, within ten minutes."""
    command = ["timeout", "600", sys.executable, "-B", "-m", "pytest", *PYTEST, "-x", *names]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return not subprocess.run(command, cwd=tree, env=environment, capture_output=True).returncode


def main() -> None:
    """Print each survivor, and for each group how many mutants were killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=27, help="of each group")
    parser.add_argument("--tests", type=int, default=300, help="the quickest, on each mutant")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    data, seconds = reached(folder)
    unneeded = shutil.ignore_patterns(".venv*", ".git", "__pycache__", "_build")
    tree = Path(shutil.copytree(ROOT, folder / "tree", ignore=unneeded))
    for group, names in GROUPS.items():
        paths, left = [ROOT / "skdp" / name for name in names], 0
        files = [file for path in paths for file in sorted(path.rglob("*.py")) or [path]]
        found = [(file, *mutant) for file in files for mutant in mutants(file)]
        for file, line, told, text in random.Random(0).sample(found, options.mutants):
            contexts = data.contexts_by_lineno(str(file))
            here = set(next((contexts[i] for i in range(line, 0, -1) if i in contexts), []))
            if here <= {""}:  # reached by the import: any test of the file may see it
                here = set().union(*contexts.values())
            tests = {name.partition("|")[0] for name in here} - {""}
            chosen = sorted(tests, key=lambda test: seconds.get(test, 0.0))[: options.tests]
            place = tree / file.relative_to(ROOT)
            place.write_bytes(text)
            if not chosen or survives(tree, chosen):
                print(f"{place.relative_to(tree)}:{line}: {told} [{len(chosen)} tests]", flush=True)
                left += 1
            place.write_bytes(file.read_bytes())
        print(f"{group}: {options.mutants - left} of {options.mutants} killed", flush=True)


if __name__ == "__main__":
    main()
