"""The estimators inside an estimator, reached through public attributes only.

A pipeline, a forest of one-against-rest classifiers or a stack is released member by member. This
module walks the members of a fitted composition, names them, and tells what must be the same in
the public twin and in every other fit: the members themselves, the columns and features that each
sees, the order of a chain, and the class labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.core.classes import ClassTable, isinstance_by_name, named
from skdp.estimators.canonical import see_through
from skdp.estimators.catalog import is_stateless, lookup

Members = Iterable[tuple[str, Any]]


@dataclass(frozen=True)
class Composite:
    """How one kind of composition is walked.

    Parameters
    ----------
    members : callable
        ``members(fitted)`` gives the name and the fitted object of each member, in a fixed order.
    structure : callable or None, default=None
        ``structure(fitted)`` gives what else has to be the same in all fits, as arrays or lists.
    """

    members: Callable[[Any], Members]
    structure: Callable[[Any], Any] | None = None


def _listed(fitted: Any) -> Members:
    return [(f"estimators_[{i}]", member) for i, member in enumerate(fitted.estimators_)]


def _stacked(fitted: Any) -> Members:
    return [*fitted.named_estimators_.items(), ("final_estimator", fitted.final_estimator_)]


def _calibrated(fitted: Any) -> Members:
    for i, pair in enumerate(fitted.calibrated_classifiers_):
        name = f"calibrated_classifiers_[{i}]"
        yield f"{name}.estimator", pair.estimator
        for j, calibrator in enumerate(pair.calibrators):
            yield f"{name}.calibrators[{j}]", calibrator


def _columns(fitted: Any) -> list:
    return [list(np.atleast_1d(columns)) for _, _, columns in fitted.transformers_]


_BAGGING = Composite(_listed, lambda fitted: fitted.estimators_features_)
_CHAIN = Composite(_listed, lambda fitted: fitted.order_)
_LIST = Composite(_listed)
_STACKING = Composite(_stacked)
_VOTING = Composite(lambda fitted: fitted.named_estimators_.items())

COMPOSITES = ClassTable(
    {
        "sklearn.ensemble.BaggingClassifier": _BAGGING,
        "sklearn.ensemble.BaggingRegressor": _BAGGING,
        "sklearn.calibration.CalibratedClassifierCV": Composite(_calibrated),
        "sklearn.multioutput.ClassifierChain": _CHAIN,
        "sklearn.compose.ColumnTransformer": Composite(
            lambda fitted: [(name, member) for name, member, _ in fitted.transformers_], _columns
        ),
        "sklearn.pipeline.FeatureUnion": Composite(lambda fitted: fitted.transformer_list),
        "sklearn.model_selection.FixedThresholdClassifier": Composite(
            lambda fitted: [("estimator", fitted.estimator_)]
        ),
        "sklearn.multioutput.MultiOutputClassifier": _LIST,
        "sklearn.multioutput.MultiOutputRegressor": _LIST,
        "sklearn.multiclass.OneVsOneClassifier": _LIST,
        "sklearn.multiclass.OneVsRestClassifier": _LIST,
        "sklearn.multiclass.OutputCodeClassifier": Composite(
            _listed, lambda fitted: fitted.code_book_
        ),
        "sklearn.pipeline.Pipeline": Composite(lambda fitted: fitted.steps),
        "sklearn.multioutput.RegressorChain": _CHAIN,
        "sklearn.ensemble.StackingClassifier": _STACKING,
        "sklearn.ensemble.StackingRegressor": _STACKING,
        "sklearn.compose.TransformedTargetRegressor": Composite(
            lambda fitted: [("transformer", fitted.transformer_), ("regressor", fitted.regressor_)]
        ),
        "sklearn.ensemble.VotingClassifier": _VOTING,
        "sklearn.ensemble.VotingRegressor": _VOTING,
    }
)

# Their random_state decides what a member is or sees: which features, which order, which code.
# Left open it is set to one number, so that twin, pairs and private fit have the same members.
STRUCTURAL_SEED = 0
SEEDED_STRUCTURE = [
    *named("sklearn.ensemble", "BaggingClassifier BaggingRegressor"),
    *named("sklearn.multiclass", "OutputCodeClassifier"),
    *named("sklearn.multioutput", "ClassifierChain RegressorChain"),
]

OUT_OF_BAG = frozenset({"oob_decision_function_", "oob_prediction_", "oob_score_"})


def walk(estimator: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk a fitted estimator and the members in it that learn from data.

    Yield the path, which is the names of the members that lead there, and the estimator. A
    composition comes before its members, and they come in their own order. What is frozen,
    stateless, dropped or passed through is left out.
    """
    estimator = see_through(estimator)
    composite = COMPOSITES.get(type(estimator))
    if composite is None and learns_nothing(estimator):
        return
    yield path, estimator
    if composite is not None:
        for name, member in composite.members(estimator):
            yield from walk(member, (*path, name))


def fitted_parts(estimator: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk the estimators that hold fitted state of their own.

    Yield path and estimator, as :func:`walk`, of those that learn something in fit, and are no
    compositions.
    """
    for path, part in walk(estimator):
        if type(part) not in COMPOSITES:
            yield path, part


def attributes_of(path: tuple[str, ...], part: Any) -> tuple[str, ...]:
    """Name the attributes that a part of an estimator releases."""
    if type(part).__name__ == "_ConstantPredictor":
        raise ValueError(
            f"The member {'__'.join(path)} has learned nothing, because it saw only one class. "
            "Use an oracle with more varied labels, or, for OutputCodeClassifier, another "
            "random_state."
        )
    return lookup(part, path).attributes(part)


def drop_out_of_bag(released: Any) -> None:
    """Remove what an ensemble learned of the records that its members did not see."""
    for _, part in walk(released):
        for attribute in OUT_OF_BAG & vars(part).keys():
            delattr(part, attribute)


def learns_nothing(estimator: Any) -> bool:
    """Return whether fitting changes nothing, so that there is nothing to release.

    It changes nothing in a placeholder and a FrozenEstimator.
    """
    frozen = isinstance(estimator, str) or isinstance_by_name(
        estimator, "sklearn.frozen.FrozenEstimator"
    )
    return frozen or is_stateless(estimator)


def reach(estimator: Any, path: Sequence[str]) -> Any:
    """Return the member at a path of :func:`walk`.

    The path may name attributes that hold an estimator.
    """
    for name in path:
        members = _members(estimator)
        estimator = see_through(members[name] if name in members else getattr(estimator, name))
    return estimator


def split_name(estimator: Any, name: str) -> tuple[tuple[str, ...], str]:
    """Split ``member__attribute`` into the path to a member and the attribute.

    Such as ``"standardscaler__mean_"`` or ``"estimators_[0]__coef_"``.
    """
    members = _members(estimator)
    # a name may end in an underscore itself, so the longest that fits is meant
    for member in sorted(members, key=len, reverse=True):
        if name.startswith(f"{member}__"):
            path, attribute = split_name(members[member], name[len(member) + 2 :])
            return (member, *path), attribute
    *others, attribute = re.split(r"__(?!_)", name)
    return tuple(others), attribute


def _members(estimator: Any) -> dict[str, Any]:
    composite = COMPOSITES.get(type(estimator))
    return {} if composite is None else dict(composite.members(estimator))


def check_structure(fitted: Any, twin: Any) -> None:
    """Refuse a fit whose members are not those of the twin.

    The released numbers of such a fit would mean something else than those of the twin. The message
    is safe to show: it holds no value.
    """
    if type(fitted) is type(twin) and type(twin) not in COMPOSITES:
        _check_classes(fitted, twin)
        return
    pairs = zip(_described(fitted), _described(twin), strict=False)
    if len(list(walk(fitted))) != len(list(walk(twin))):
        raise ValueError("the members of a composition changed")
    for (path, part, structure), (expected_path, expected, expected_structure) in pairs:
        if path != expected_path or type(part) is not type(expected):
            raise ValueError("the members of a composition changed")
        _check_classes(part, expected)
        if not _same(structure, expected_structure):
            raise ValueError("the columns, features or order of a composition changed")


def _check_classes(fitted: Any, twin: Any) -> None:
    if not _same(getattr(fitted, "classes_", None), getattr(twin, "classes_", None)):
        raise ValueError("a class is missing")


def _described(fitted: Any) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    for path, part in walk(fitted):
        composite = COMPOSITES.get(type(part))
        structure = None if composite is None else composite.structure
        yield path, part, None if structure is None else structure(part)


def _same(value: Any, expected: Any) -> bool:
    if isinstance(expected, list):  # one array for each output or member
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(map(np.array_equal, value, expected))
        )
    if value is None or expected is None:
        return value is expected
    return np.array_equal(value, expected)


def classes_of_outputs(fitted: Any) -> Any:
    """Return the class labels of a classifier, output by output where there are several.

    Those of a chain, which come in the order of the chain, in the order of the outputs.
    """
    while isinstance_by_name(fitted, "sklearn.pipeline.Pipeline"):
        fitted = fitted.steps[-1][1]
    if not isinstance_by_name(fitted, "sklearn.multioutput.ClassifierChain"):
        return fitted.classes_
    by_output = dict(zip(fitted.order_, fitted.classes_, strict=True))
    return [by_output[output] for output in range(len(by_output))]
