"""How an estimator is set up before it is fitted, so that its fits can be compared.

Twin, pairs and private fit have to be fits of one and the same thing: silent, uncached, with the
members and the categories that are public, and with no randomness that nobody can repeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any

from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from skdp.core.classes import isinstance_by_name, named
from skdp.core.dataset import Dataset
from skdp.estimators.canonical import CanonicalStep, columns_of
from skdp.estimators.composition import COMPOSITES, SEEDED_STRUCTURE, STRUCTURAL_SEED, walk
from skdp.estimators.members import roles, with_stand_ins
from skdp.estimators.packing import same
from skdp.estimators.parts import ReleasedPart
from skdp.estimators.quiet import make_quiet

# Transformers that leave missing values missing.
_PASS_GAPS = frozenset(
    {
        "MaxAbsScaler",
        "MinMaxScaler",
        "OrdinalEncoder",
        "PowerTransformer",
        "QuantileTransformer",
        "RFE",
        "RFECV",
        "RobustScaler",
        "SelectFromModel",
        "SequentialFeatureSelector",
        "StandardScaler",
        "VarianceThreshold",
    }
)

_BAGS = named("sklearn.ensemble", "BaggingClassifier BaggingRegressor")
_BY_POSITION = named("sklearn.model_selection", "PredefinedSplit TimeSeriesSplit")

# Compositions that pass weights on to their members, though their signature does not say so.
_PASS_WEIGHTS = named(
    "sklearn.ensemble", "StackingClassifier StackingRegressor VotingClassifier VotingRegressor"
)


def describe(estimator: Any) -> str:
    """Describe an estimator as configured, for people: scikit-learn shortens long parameters."""
    return re.sub(" at 0x[0-9a-fA-F]+", "", " ".join(repr(estimator).split()))


def without_side_effects(estimator: Any) -> Any:
    """Return a clone whose fit writes no cache, prints nothing and has a repeatable structure.

    Every nested `memory` and callback is None, every nested `verbose` off, in options too. A
    `random_state` that decides what the members are, as in bagging, is 0 where it was left open.
    What keeps its fitted state private has a stand-in that does not.
    """
    estimator = make_quiet(clone(estimator))
    settings: dict[str, Any] = {}
    for prefix, member in configured(estimator):
        if isinstance_by_name(member, *SEEDED_STRUCTURE) and not isinstance(
            member.random_state, Integral
        ):
            settings[f"{prefix}random_state"] = STRUCTURAL_SEED
    return with_stand_ins(estimator.set_params(**settings))


def configured(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Walk an estimator and those among its parameters, fitted or not.

    Yield what comes before the name of a parameter in ``estimator.set_params``, and the estimator.
    What is inside a FrozenEstimator is left out.
    """
    yield "", estimator
    if isinstance_by_name(estimator, "sklearn.frozen.FrozenEstimator"):
        return
    frozen: list[str] = []
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if not (hasattr(value, "get_params") and hasattr(value, "fit")) or isinstance(value, type):
            continue
        if isinstance_by_name(value, "sklearn.frozen.FrozenEstimator"):
            frozen.append(f"{name}__")
        if not name.startswith(tuple(frozen)):
            yield f"{name}__", value


def check_configuration(estimator: Any) -> None:
    """Refuse a configuration whose fits cannot be compared.

    Such as a splitter that shuffles without a seed or goes by the position of records, or an
    estimator inside that is to stay as it was fitted without being a FrozenEstimator.
    """
    for name, value in estimator.get_params(deep=True).items():
        if name.rsplit("__", 1)[-1] == "cv" and isinstance(value, str):
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} is {value!r}, which takes "
                "members as they were fitted. PrivateEstimator fits from scratch: wrap a member "
                "that has learned from public records in sklearn.frozen.FrozenEstimator."
            )
        listed = name.rsplit("__", 1)[-1] == "cv" and isinstance(value, list | tuple)
        if listed or isinstance_by_name(value, *_BY_POSITION):
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} must not go by the position "
                "of the records, which are brought into a random order. "
                f"Got an object of type {type(value).__name__}. Give it a number of folds."
            )
        shuffles = callable(getattr(value, "split", None)) and getattr(value, "shuffle", True)
        if shuffles and not isinstance(getattr(value, "random_state", 0), Integral):
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} must split alike in both "
                f"fits of a pair. Got {value!r}. Give its random_state an integer."
            )


def with_public_structure(estimator: Any, twin: Any) -> Any:
    """Give encoders the categories, and kernel maps the landmarks, of the public twin.

    The nested `categories` that were "auto", and all `landmarks`, become arrays, in place. Refused
    if the members of a bag have seen different landmarks.
    """
    settings: dict[str, list] = {}
    for path, part in walk(twin):
        if isinstance(getattr(part, "categories", None), str):
            parameter, found = "categories", list(part.categories_)
        elif type(part).__name__ == "PublicNystroem":
            parameter, found = "landmarks", [part.components_, part.normalization_]
        else:
            continue
        name = "__".join((*_parameter_path(twin, path), parameter))
        known = settings.setdefault(name, found)
        if not same(known, found):
            raise ValueError(
                f"The {name!r} parameter of {type(twin).__name__} must list the categories, since "
                "its members see different ones. Got 'auto'."
                if parameter == "categories"
                else f"The members of {type(twin).__name__} see different landmarks of Nystroem, "
                "and these must be public. Map the records before, in a pipeline."
            )
    return estimator.set_params(**settings)


def with_canonical_steps(
    estimator: Any, twin: Any, parts: list[ReleasedPart]
) -> tuple[Any, list[ReleasedPart]]:
    """Bring steps whose components or clusters are aligned to the twin into that form at once.

    Only steps whose output later steps are fitted to are exchanged, in place. The parts of one
    step, as in members of a bag, are aligned to the twin of the first.
    """
    steps = {
        prefix.removesuffix("__"): step
        for prefix, step, transforms in roles(estimator)
        if transforms
    }
    exchanged: dict[str, CanonicalStep] = {}
    aligned = []
    for part in parts:
        if part.names and part.entry.depends_on_twin:
            name = "__".join(_parameter_path(twin, part.path))
            if name in steps:
                step = exchanged.setdefault(name, CanonicalStep(steps[name], {}))
                first = step.parts.setdefault(columns_of(part.twin), part)
                part = replace(part, twin=first.twin)
        aligned.append(part)
    return estimator.set_params(**exchanged), aligned


def _parameter_path(twin: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Turn the path of a fitted member into the path of the parameter it was made from."""
    for name in path:
        members = dict(COMPOSITES[type(twin)].members(twin)) if type(twin) in COMPOSITES else {}
        parameters = twin.get_params(deep=False)
        if "[" in name:
            # ClassifierChain called it so before scikit-learn 1.7
            yield "estimator" if "estimator" in parameters else "base_estimator"
        else:
            yield name
        twin = members[name]


def seed_names(estimator: Any) -> list[str]:
    """Name the nested `random_state` parameters that the user left open."""
    return [
        name
        for name, value in estimator.get_params(deep=True).items()
        if name.rsplit("__", 1)[-1] == "random_state" and not isinstance(value, int)
    ]


def takes(estimator: Any, kind: str) -> bool:
    """Return whether an estimator takes X with missing values, categories or strings.

    Compositions do not always say so themselves, so their members are asked. `kind` is a tag:
    "allow_nan", "categorical" or "string". True if some column may be so.
    """
    if estimator is None or isinstance(estimator, str):
        return True
    if isinstance_by_name(estimator, "sklearn.pipeline.Pipeline"):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        return _pipeline_takes(steps, kind)
    if isinstance_by_name(estimator, "sklearn.compose.ColumnTransformer"):
        members = [member for _, member, _ in estimator.transformers]
        return any(takes(member, kind) for member in [*members, estimator.remainder])
    if isinstance_by_name(estimator, "sklearn.pipeline.FeatureUnion"):
        return all(takes(member, kind) for _, member in estimator.transformer_list)
    if getattr(get_tags(estimator).input_tags, kind):
        return True
    if isinstance_by_name(estimator, "sklearn.preprocessing.FunctionTransformer"):
        return not estimator.validate  # its function may take anything, and does not say
    members = [value for name, value in configured(estimator) if name.count("__") == 1]
    return (
        type(estimator) in COMPOSITES
        and bool(members)
        and all(takes(member, kind) for member in members)
    )


def _pipeline_takes(steps: list, kind: str) -> bool:
    """Follow X through the steps, up to one that gives numbers without gaps."""
    for step in steps:
        if not takes(step, kind):
            return False
        if kind != "allow_nan" or type(step).__name__ not in _PASS_GAPS:
            return True
    return bool(steps)


def takes_weights(estimator: Any) -> bool:
    """Return whether an estimator can be fitted with `sample_weight`.

    The weights of a pipeline go to its last step.
    """
    if isinstance_by_name(estimator, "sklearn.pipeline.Pipeline"):
        return takes_weights(estimator.steps[-1][1])
    if not hasattr(estimator, "fit"):
        return False
    return has_fit_parameter(estimator, "sample_weight") or isinstance_by_name(
        estimator, *_PASS_WEIGHTS
    )


def fit_on(estimator: Any, dataset: Dataset) -> Any:
    """Fit an estimator on a dataset, with its weights if it has any."""
    if len(dataset) < 3:
        return estimator.fit(*dataset)
    X, y, weights = dataset
    with config_context(enable_metadata_routing=False):  # where they go is said, not requested
        return estimator.fit(X, y, **{_weights_name(estimator): weights})


def _weights_name(estimator: Any) -> str:
    if isinstance_by_name(estimator, "sklearn.pipeline.Pipeline"):
        step, last = estimator.steps[-1]
        return f"{step}__{_weights_name(last)}"
    return "sample_weight"
