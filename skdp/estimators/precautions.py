"""Refusals and warnings about an estimator as configured, before it is fitted."""

from __future__ import annotations

import pickle
from contextlib import suppress
from itertools import chain

from sklearn.base import BaseEstimator

from skdp.core.checks import shorten, warn
from skdp.core.dtypes import categories_of
from skdp.core.schema import Form
from skdp.core.types import Estimator
from skdp.estimators.catalog import (
    check_releasable,
    entry_of,
    is_stateless,
    lookup,
)
from skdp.estimators.configuration import members_in, without_side_effects
from skdp.estimators.members import configured_members, fitted_parts, is_composition, last_step
from skdp.estimators.trees import is_tree
from skdp.exceptions import PrivacyLeakWarning


def check_members(estimator: Estimator) -> None:
    """Refuse an estimator with a part of which release='auto' knows no release."""
    for _, part, transforms in configured_members(estimator):
        check_releasable(part)
        if transforms:
            _check_transforms(part)
    _check_trees(estimator)


def has_parameters(estimator: Estimator) -> bool:
    """Return whether release='auto' knows the parameters, or the leaves, of all parts."""
    with suppress(ValueError):
        check_members(estimator)
        for path, part, _ in configured_members(estimator):
            if not (is_stateless(part) or is_composition(part) or is_tree(part)):
                lookup(part, path)
        return True
    return False


def _check_transforms(step: Estimator) -> None:
    """Refuse a step that transforms if only its predictions can be released."""
    if "transform" not in entry_of(step).unserved:
        return
    raise ValueError(
        f"PrivateEstimator cannot release {type(step).__name__} with release='auto' as a step that "
        "transforms: what is released suffices for its predictions only. Make it the last step, "
        "use PCA, or fit it on public records and wrap it in FrozenEstimator."
    )


def _check_trees(estimator: Estimator) -> None:
    """Refuse a tree that is neither the whole estimator nor the last step of a pipeline."""
    last = last_step(estimator)
    for _, part, _ in configured_members(estimator):
        if is_tree(part) and part is not last:
            raise ValueError(
                f"PrivateEstimator cannot release {type(part).__name__} inside "
                f"{type(estimator).__name__}: which "
                "leaves there are is learned from the records. A tree or forest releases its leaf "
                "values when it is the whole estimator or the last step of a pipeline."
            )


def warn_if_fitted(*things: object) -> None:
    """Warn of a fitted estimator: the wrapper keeps it, and what it has learned, as a parameter."""
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


def warn_if_unsaved(*estimators: Estimator) -> None:
    """Warn of parameters that `save` cannot write, before the budget pays."""
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
    """Warn of an encoder that raises at a category that it does not know."""
    # a private record with another category than a declared one is refused before it is paid for
    declared = {
        name
        for name, dtype in zip(form.names, form.dtypes, strict=False)
        if categories_of(dtype) is not None
    }
    for _, part, _ in fitted_parts(public_fit):
        raises = getattr(part, "handle_unknown", None) == "error"
        columns = getattr(part, "feature_names_in_", [None])
        if raises and not declared.issuperset(columns):
            warn(
                f"The {type(part).__name__} in the 'estimator' of PrivateEstimator raises where a "
                "private record has a category that is not listed or that the public records lack, "
                "after the budget has paid. Set handle_unknown='ignore', or 'use_encoded_value' "
                "with unknown_value=-1; or give the oracle's columns the dtype 'category': then "
                "such a record is refused before."
            )
            return
