"""Refusals and warnings about an estimator as configured, before it is fitted."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain

from skdp.core.checks import warn
from skdp.core.dtypes import categories_of
from skdp.core.schema import Form
from skdp.core.types import Estimator
from skdp.estimators.catalog import check_releasable, entry_of, is_stateless, lookup
from skdp.estimators.configuration import members_in
from skdp.estimators.members import configured_members, fitted_parts, is_composition, last_step
from skdp.estimators.trees import is_tree
from skdp.exceptions import PrivacyLeakWarning


def check_members(estimator: Estimator) -> None:
    """Refuse an estimator with a part of which release='auto' knows no release."""
    last = last_step(estimator)
    for _, part, transforms in configured_members(estimator):
        name = type(part).__name__
        check_releasable(part)
        if transforms and "transform" in entry_of(part).unserved:
            raise ValueError(
                f"PrivateEstimator cannot release {name} with release='auto' as a step that "
                "transforms: what is released suffices for its predictions only. Make it the last "
                "step, use PCA, or wrap a public fit in FrozenEstimator."
            )
        if is_tree(part) and part is not last:
            raise ValueError(
                f"PrivateEstimator cannot release {name} inside {type(estimator).__name__}: which "
                "leaves there are is learned from the records. A tree or forest releases its leaf "
                "values when it is the whole estimator or the last step of a pipeline."
            )


def has_parameters(estimator: Estimator) -> bool:
    """Return whether release='auto' knows the parameters, or the leaves, of all parts."""
    with suppress(ValueError):  # what is refused has none
        check_members(estimator)
        for path, part, _ in configured_members(estimator):
            if not (is_stateless(part) or is_composition(part) or is_tree(part)):
                lookup(part, path)
        return True
    return False


def warn_if_fitted(*things: object) -> None:
    """Warn of a fitted estimator: the wrapper keeps it, and what it has learned, as a parameter."""
    walked = chain.from_iterable(configured_members(each) for each in members_in(things))
    learned = (part for _, part, _ in walked if not is_stateless(part))
    for part in learned:
        if any(name.endswith("_") and not name.startswith("_") for name in vars(part)):
            warn(
                f"The 'estimator' parameter of PrivateEstimator holds a fitted "
                f"{type(part).__name__}, which stays in the wrapper and in its pickle. If it has "
                "seen private records, pass clone(estimator). If they were public and it is to "
                "stay as it is, wrap it in sklearn.frozen.FrozenEstimator.",
                PrivacyLeakWarning,
            )
            return


def warn_of_unknown_categories(public_fit: Estimator, form: Form) -> None:
    """Warn of an encoder that raises at a category that it does not know."""
    # a private record with another category than a declared one is refused before it is paid for
    named = zip(form.names, form.dtypes, strict=False)
    declared = {name for name, dtype in named if categories_of(dtype) is not None}
    for _, part, _ in fitted_parts(public_fit):
        raises = vars(part).get("handle_unknown") == "error"
        columns = getattr(part, "feature_names_in_", None)
        if raises and (columns is None or not declared.issuperset(columns)):
            warn(
                f"The {type(part).__name__} in the 'estimator' of PrivateEstimator raises where a "
                "private record has a category that is not listed or that the public records lack, "
                "after the budget has paid. Set handle_unknown='ignore', or 'use_encoded_value' "
                "with unknown_value=-1, or give the oracle's columns the dtype 'category'."
            )
            return
