"""The house rules that a reader cannot see in one file: who may import whom, and what."""

import ast
import functools
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skdp

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "skdp").rglob("*.py"))
SCRIPTS = sorted([*(ROOT / "examples").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])

WINGS = {"estimators", "sensitivity", "mechanisms", "codes", "accounting"}
LEVELS = {"exceptions": 0, "_version": 0, "core": 1, "oracles": 2} | dict.fromkeys(WINGS, 3)
LEVELS |= dict.fromkeys({"functions", "bounds", "tables", "compare"}, 4)
LEVELS |= {"results": 5, "aggregate": 6, "result": 6, "execution": 7, "plan": 8, "planning": 9}
LEVELS |= {"release": 10, "estimator": 11, "search": 12}
LEVELS |= dict.fromkeys({"displays", "audit", "risk"}, 13) | {"__main__": 14}
HEAVY = {"matplotlib", "pandas", "polars", "dask", "ray", "dp_accounting", "opendp"}
HEAVY |= {"duckdb", "narwhals"}


@functools.cache
def parsed(source):
    """The tree of a text, which several tests walk."""
    return ast.parse(source)


def module_name(path):
    """``skdp/estimators/parameters.py`` -> ``skdp.estimators.parameters``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in SOURCES}


def imported(tree):
    """Every imported thing as a dotted name, with the local name that it is bound to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, alias.asname or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                prefix = "." * node.level + (node.module or "")
                yield f"{prefix}.{alias.name}", alias.asname or alias.name


def place(module):
    """Level and room of a module: the core at the bottom, then wings, then what uses them."""
    room = module.removeprefix("skdp").lstrip(".").split(".")[0]
    return LEVELS.get(room), room


def direction_violations(module, source, modules=frozenset(MODULES)):
    """One sentence for each import of a module that goes against the direction of the house."""
    if module == "skdp":
        return []
    level, room = place(module)
    if level is None:
        return [f"{module} has no place in the house: give it one in LEVELS"]
    found = []
    for name, _ in imported(parsed(source)):
        if name.startswith("."):
            found.append(f"{module} imports {name} relatively")
        if name.split(".")[0] != "skdp":
            continue
        target = name if name in modules else name.rpartition(".")[0]
        if target in {"", "skdp"}:
            found.append(f"{module} imports {name} through the front door")
            continue
        target_level, target_room = place(target)
        if target_level is None or not (target_level < level or target_room == room):
            found.append(f"{module} imports {target}")
    return found


def circles(texts):
    """Sorted lists of modules that import each other, wherever in their texts, by name."""
    reached = {
        module: {
            name if name in texts else name.rpartition(".")[0] for name, _ in imported(parsed(text))
        }
        & texts.keys()
        for module, text in texts.items()
    }
    for middle, others in itertools.product(texts, repeat=2):
        if middle in reached[others]:
            reached[others] |= reached[middle]
    found = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in texts
        if module in reached[module]
    }
    return sorted(map(sorted, found))


def private_names(source):
    """Names of scikit-learn in `source` that are not public, by import or by attribute."""
    tree = parsed(source)
    bound, found = set(), []

    def check(dotted):
        if any(part.startswith("_") and not part.endswith("__") for part in dotted.split(".")):
            found.append(dotted)

    for name, local in imported(tree):
        if name.split(".")[0] == "sklearn":
            bound.add(local)
            check(name)
    for node in ast.walk(tree):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in bound:
            check(".".join([node.id, *reversed(parts)]))
    return found


def violations(rule, paths):
    """What `rule` finds in the text of each file, by file, where it finds something."""
    found = {str(path.relative_to(ROOT)): rule(path.read_text()) for path in paths}
    return {path: each for path, each in found.items() if each}


def test_imports_follow_the_direction_of_the_house():
    texts = {module_name(path): path.read_text() for path in SOURCES}
    assert [each for text in texts.items() for each in direction_violations(*text)] == []


@pytest.mark.loop(
    ("module", "line", "n_found"),
    [
        ("skdp.core.guarantee", "from skdp.mechanisms.base import Mechanism", 1),
        ("skdp.estimators.parameters", "import skdp.sensitivity.sampler", 1),
        ("skdp.mechanisms.laplace", "def f():\n    from skdp.release import release", 1),
        ("skdp.risk", "from skdp.audit.lower_bound import label_test", 1),
        ("skdp.release", "from skdp import PrivacyGuarantee", 1),
        ("skdp.release", "from .targets import parameters", 1),
        ("skdp.release", "from skdp.attic import chest", 1),
        ("skdp.attic", "", 1),
        ("skdp.mechanisms.laplace", "from skdp.core.guarantee import PrivacyGuarantee", 0),
        ("skdp.audit.lower_bound", "from skdp.audit.privacy_loss import loss", 0),
        ("skdp", "from skdp.release import release", 0),
    ],
)
def test_a_planted_import_against_the_direction_is_found(module, line, n_found):
    modules = MODULES | {"skdp.mechanisms.base", "skdp.sensitivity.sampler", "skdp.attic"}
    assert len(direction_violations(module, line, modules)) == n_found


def test_no_modules_import_each_other():
    assert circles({module_name(path): path.read_text() for path in SOURCES}) == []


@pytest.mark.parametrize(
    "texts",
    [
        {"a": "import b", "b": "import c", "c": "def f():\n    from a import x", "d": "import a"},
        {"a.b": "from a import c", "a.c": "if TYPE_CHECKING:\n    from a.b import x"},
        {"a": "import a"},
    ],
)
def test_a_planted_circle_is_found(texts):
    expected = sorted(texts.keys() - {"d"})
    assert circles(texts) == [expected]


@pytest.mark.slow
def test_only_public_names_of_scikit_learn():
    assert violations(private_names, SOURCES + SCRIPTS) == {}


@pytest.mark.loop(
    ("source", "expected"),
    [
        ("from sklearn.utils.validation import _num_samples", True),
        ("from sklearn import _config", True),
        ("import sklearn.svm._base", True),
        ("import sklearn.svm as svm\nsvm._base.fit()", True),
        ("from sklearn.svm import SVC\nSVC._validate_data", True),
        ("from sklearn.svm import LinearSVC\nmodel = LinearSVC()\nmodel._own = 1", False),
        ("import sklearn\nprint(sklearn.__version__)", False),
        ("from scipy._lib import _util", False),
    ],
)
def test_a_planted_private_name_of_scikit_learn_is_found(source, expected):
    assert bool(private_names(source)) == expected


def optional_imports(source):
    """Optional packages that `source` imports where it is loaded, outside of any function."""

    def loading(node):
        for child in ast.iter_child_nodes(node):
            typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield from (name for name, _ in imported(ast.Module([child], [])))
            elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not typing_only:
                yield from loading(child)

    return [name for name in loading(parsed(source)) if name.split(".")[0] in HEAVY]


def test_optional_packages_are_imported_where_they_are_used():
    assert violations(optional_imports, SOURCES) == {}


@pytest.mark.loop(
    ("source", "expected"),
    [
        ("import pandas as pd", ["pandas"]),
        (
            "try:\n    from dask.array import array\nexcept ImportError:\n    pass",
            ["dask.array.array"],
        ),
        ("class A:\n    import matplotlib", ["matplotlib"]),
        ("def f():\n    import pandas", []),
        ("if TYPE_CHECKING:\n    import pandas", []),
    ],
)
def test_a_planted_optional_import_is_found(source, expected):
    assert optional_imports(source) == expected


STEPS = ["import sklearn.base", "import skdp", "skdp.audit", "from skdp import risk"]


@pytest.fixture(scope="module")
def loaded():
    """The modules that each of the steps loads, in turn, in one fresh interpreter."""
    step = "before = set(sys.modules)\n{}\nprint(*set(sys.modules) - before)"
    code = "\n".join(["import sys", *map(step.format, STEPS)])
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return dict(zip(STEPS, (set(line.split()) for line in run.stdout.split("\n")), strict=False))


# What importing skdp may load beyond scikit-learn's base: that which tells the kind of a response.
LIGHT = {"sklearn.utils.metaestimators", "sklearn.utils.multiclass", "sklearn.utils._unique"}


def too_much(modules):
    """Those of the modules that are neither light nor of the standard library."""
    known = {"skdp", *sys.stdlib_module_names}
    return {name for name in modules - LIGHT if name.split(".")[0] not in known}


def test_import_loads_little_more_than_the_base_of_scikit_learn(loaded):
    # Some versions of scikit-learn load pandas themselves, wherever it is installed.
    assert too_much(loaded["import skdp"]) == set()
    assert "skdp.release" in loaded["import skdp"]
    assert "numpy" in too_much(loaded["import sklearn.base"])


def test_modules_that_look_back_are_imported_when_they_are_asked_for(loaded):
    assert loaded["import skdp"].isdisjoint({"skdp.audit", "skdp.risk"})
    assert "skdp.audit" in loaded["skdp.audit"]
    assert "skdp.risk" in loaded["from skdp import risk"]
    assert {"audit", "risk"} <= set(dir(skdp))
    with pytest.raises(AttributeError, match="attic"):
        _ = skdp.attic


def test_a_public_name_has_one_import_path():
    assert sorted(skdp.__all__) == sorted(set(skdp.__all__))
    assert {name for name in dir(skdp) if name[0] != "_"} == {*skdp.__all__, *skdp.WINGS}


def test_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(r"^version: (\S+)$", citation, re.M).group(1) == skdp.__version__
    assert re.search(r"^## \[?([\d.]+)", changelog, re.M).group(1) == skdp.__version__
