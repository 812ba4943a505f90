"""From the 'release' parameter of PrivateEstimator to the target that is evaluated."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from sklearn.base import BaseEstimator

from skdp.core.checks import shorten, shown, warn
from skdp.core.dtypes import categories_of
from skdp.core.schema import Form
from skdp.core.target import Target, is_auto, replaces
from skdp.core.types import Estimator
from skdp.estimators.catalog import (
    check_releasable,
    entry_of,
    is_stateless,
    substitute_of,
    traits_of,
)
from skdp.estimators.configuration import (
    check_configuration,
    members_in,
    without_side_effects,
)
from skdp.estimators.members import configured_members, fitted_parts, last_step
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.trees import LeafTarget, is_tree
from skdp.exceptions import PrivacyLeakWarning
from skdp.fitted_function import FittedFunctionTarget
from skdp.functions.bernstein import BernsteinTransformer


def check_release(estimator: Estimator, release: object) -> None:
    """Refuse, before any fit, what has no release."""
    check_configuration(estimator)
    if isinstance(release, Target) and not replaces(release, "restore"):
        raise TypeError(
            "The 'release' parameter of PrivateEstimator takes a target that has a method "
            "restore(value) of its own, which makes the released estimator. "
            f"Got {type(release).__name__}."
        )
    if isinstance(release, str) and release != "auto":
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must be 'auto' or a list of names of "
            f"fitted attributes. Got {shown(release)}. A single name is a list too: "
            f"[{shown(release)}]."
        )
    kinds = Iterable | LeafTarget | BernsteinTransformer | Target
    if not isinstance(release, kinds):
        raise TypeError(
            "The 'release' parameter of PrivateEstimator must be 'auto', a list of names of fitted "
            "attributes, a LeafTarget, a BernsteinTransformer or a target, which inherits from "
            f"skdp.Target and has a method 'restore'. Got {type(release).__name__}. "
            "To release the value of a function, use skdp.release."
        )
    if isinstance(release, Sequence) and not all(isinstance(name, str) for name in release):
        raise TypeError(
            "The 'release' parameter of PrivateEstimator must list names of fitted attributes. "
            f"Got {shown(release)}."
        )
    if isinstance(release, LeafTarget):
        release.check(estimator)
    elif isinstance(release, str):
        for _, part, transforms in configured_members(estimator):
            check_releasable(part)
            if transforms:
                _check_transforms(part)
        _check_trees(estimator)


def warn_if_fitted(*things: object) -> None:
    """Point out a fitted estimator: the wrapper keeps it as a parameter, with all it has seen."""
    walked = (configured_members(each) for each in members_in(things))
    for _, part, _ in chain.from_iterable(walked):
        if is_stateless(part):
            continue
        if any(name.endswith("_") and not name.startswith("_") for name in vars(part)):
            warn(
                f"The 'estimator' parameter of PrivateEstimator holds a fitted "
                f"{type(part).__name__}, which stays in the wrapper and in its pickle. If it has "
                "seen private records, pass clone(estimator). If they were public and it is to "
                "stay as it is, wrap it in sklearn.frozen.FrozenEstimator.",
                PrivacyLeakWarning,
            )
            return


def warn_if_unsaved(release: object, *estimators: Estimator) -> None:
    """Point out what `save` could not write, while another may still be taken for nothing."""
    if isinstance(release, BernsteinTransformer | Target):  # what that makes is released
        return
    for estimator in estimators:
        configured = without_side_effects(estimator)
        error = _error_of_pickling(configured)
        if not error:
            continue
        names = [
            name
            for name, value in configured.get_params().items()
            if _error_of_pickling(value) and not isinstance(value, list | BaseEstimator)
        ]
        warn(
            f"What is released of this {type(estimator).__name__} cannot be saved, because of "
            f"{shorten(names) if names else f'a {error}'}: no other process finds a lambda, or a "
            "function or class within another. If you mean to save it, take one of a module before "
            "you spend, such as numpy.log1p."
        )
        return


def _error_of_pickling(thing: object) -> str:
    """Return the name of the error with which something cannot be pickled, empty if it can."""
    try:
        pickle.dumps(thing, protocol=5, buffer_callback=lambda _: None)  # no array is copied
    except Exception as error:  # of whatever kind: it is the thing's own
        return type(error).__name__
    return ""


def warn_of_unknown_categories(public_fit: Estimator, form: Form) -> None:
    """Point out an encoder that raises at categories that it does not know."""
    # of these a private record is brought into the public form, or refused before it is paid for
    declared = {
        name
        for name, dtype in zip(form.names, form.dtypes, strict=False)
        if categories_of(dtype) is not None
    }
    for _, part, _ in fitted_parts(public_fit):
        raises = getattr(part, "handle_unknown", None) == "error"
        columns = getattr(part, "feature_names_in_", [None])
        if raises and not declared.issuperset(columns):
            listed = not isinstance(part.categories, str)
            unknown = "is not listed" if listed else "the public records lack"
            ordinal = "'use_encoded_value', unknown_value=-1"
            remedy = "'ignore'" if hasattr(part, "sparse_output") else ordinal
            warn(
                f"The {type(part).__name__} in the 'estimator' of PrivateEstimator raises where a "
                f"private record has a category that {unknown}, if only by its spelling, after the "
                f"budget has paid. Set handle_unknown={remedy}, or give the oracle's columns the "
                "dtype 'category': then such a record is refused before."
            )
            return


def make_target(
    estimator: Estimator, release: Any, public_fit: Estimator, weighted: bool = False
) -> Target:
    """Make the target of one estimator.

    "auto" takes the leaves of a tree or forest, else fitted attributes. A transformer takes the
    fitted function on its lattice, and a target is taken as it is. A weighted fit is another
    function of the data.
    """
    if is_auto(release) and is_tree(last_step(estimator)):
        release = LeafTarget()
    if isinstance(release, LeafTarget):
        target: Target = release.bind(estimator, public_fit)
    elif isinstance(release, BernsteinTransformer):
        target = FittedFunctionTarget(estimator, release, public_fit)
    elif isinstance(release, Target):
        return release
    else:
        target = ParameterTarget(estimator, release, public_fit)
    if weighted:
        target.description += ", weighted"
        target.key_parts += ("weighted",)
    return target


def _check_transforms(step: Estimator) -> None:
    """Refuse a step that transforms when only what it predicts with is released."""
    if "transform" not in entry_of(step).unserved or substitute_of(step, True) is not None:
        return
    raise ValueError(
        f"PrivateEstimator cannot release {type(step).__name__} with release='auto' as a step that "
        "transforms: what is released suffices for its predictions only. Make it the last step, "
        "use PCA, or fit it on public records and wrap it in FrozenEstimator."
    )


def _check_trees(estimator: Estimator) -> None:
    """Let a tree be the whole estimator or the last step of pipelines, and nothing else."""
    last = last_step(estimator)
    if is_tree(last):
        LeafTarget().check(estimator)
    for _, part, _ in configured_members(estimator):
        traits = traits_of(part)
        bagged = traits.bags and part.estimator is None
        if bagged or (traits.tree and part is not last):
            name = "DecisionTree" if bagged else type(part).__name__
            raise ValueError(
                f"PrivateEstimator cannot release {name} inside {type(estimator).__name__}: which "
                "leaves there are is learned from the records. A tree or forest releases its leaf "
                "values when it is the whole estimator or the last step of a pipeline."
            )
