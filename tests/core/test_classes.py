"""Classes told by their names: the same answers as with the classes themselves."""

import importlib
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (imported for its effect)
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import all_estimators

import skdp
from skdp.core.classes import ClassTable, isinstance_by_name, named, public_name
from skdp.estimators import catalog

ROOT = Path(skdp.__file__).parent


def load(name):
    module, _, kind = name.rpartition(".")
    return getattr(importlib.import_module(module), kind, object)


def test_every_estimator_has_the_name_by_which_it_is_imported():
    kinds = [kind for _, kind in all_estimators()]
    assert len(kinds) > 150
    assert [load(public_name(kind)) for kind in kinds] == kinds


class Machine(LinearSVC):
    pass


def impostor(kind):
    """Return a subclass that says of itself that it is `kind`."""
    return type(kind.__name__, (kind,), {"__module__": kind.__module__})


@pytest.mark.loop("kind", [Machine, impostor(LinearSVC), impostor(object), int, np.ndarray])
def test_a_class_that_is_not_scikit_learns_has_no_name(kind):
    assert public_name(kind) == ""


def test_isinstance_by_name_agrees_with_isinstance():
    class Chain(Pipeline):
        pass

    estimators = [
        *(LinearSVC(), Machine(), SVC(), Ridge(), None, "passthrough", LinearSVC),
        *(Pipeline([]), Chain([]), FeatureUnion([]), ColumnTransformer([]), impostor(Pipeline)([])),
    ]
    kinds = [LinearSVC, SVC, Pipeline, FeatureUnion, ColumnTransformer, BaseEstimator]
    for thing, kind, other in itertools.product(estimators, kinds, kinds):
        expected = isinstance(thing, kind | other)
        assert isinstance_by_name(thing, public_name(kind), public_name(other)) == expected


def test_a_table_holds_its_classes_and_what_was_added_and_knows_what_others_derive_from():
    table = ClassTable({"sklearn.svm.SVC": 1, "sklearn.svm.LinearSVC": 2, "sklearn.svm.Gone": 4})
    table.added[Machine] = 3
    kinds = (SVC, LinearSVC, Machine, impostor(SVC), int)
    assert dict(table) == {SVC: 1, LinearSVC: 2, Machine: 3}
    assert [table.get(kind) for kind in kinds] == [1, 2, 3, None, None]
    assert [table.inherited(kind, 0) for kind in kinds] == [1, 2, 2, 1, 0]
    assert dict(table.where(lambda value: value > 1)) == {LinearSVC: 2, Machine: 3}
    assert dict(table.where(lambda value: value < 2)) == {SVC: 1}


# Classes that some version of scikit-learn from 1.6 on does not have.
NOT_EVERYWHERE = {"sklearn.manifold.ClassicalMDS"}
WRITTEN = re.compile(
    r'"(sklearn\.[a-z_.]+\.[A-Z]\w+)"|(?:named|_refuse)\(\s*"(sklearn[\w.]+)",\s*"([\w ]+)"'
)


def written(source):
    """The names of classes of scikit-learn in the strings of `source`."""
    for name, module, names in WRITTEN.findall(source):
        yield from [name] if name else named(module, names)


def dead(names):
    """Those names under which scikit-learn has no class: a slip of the pen would go unnoticed."""
    return {name for name in names if public_name(load(name)) != name}


def test_every_name_is_that_of_a_class():
    sources = [path.read_text() for path in ROOT.rglob("*.py")]
    names = {name for source in sources for name in written(source)}
    keys = {key for module in vars(catalog).values() for key in getattr(module, "ENTRIES", ())}
    for key in keys:  # one class, or a module and its classes
        module, *classes = key.split()
        names |= {f"{module}.{name}" for name in classes} or {key}
    assert len(names) > 200
    assert dead(names) <= NOT_EVERYWHERE
