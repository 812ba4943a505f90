"""From the 'release' parameter of PrivateEstimator to the target that is evaluated."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from skdp.targets.configuration import check_configuration, configured
from skdp.targets.leaves import TREES, LeafTarget, last_step
from skdp.targets.parameters import ParameterTarget

BOOSTING = (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)


def check_release(estimator: Any, release: Any) -> None:
    """Refuse, before any fit, what has no release.

    Parameters
    ----------
    estimator : estimator object
        As configured.
    release : "auto", sequence of str or LeafTarget
        What to release.

    Raises
    ------
    ValueError
        If the estimator boosts, if a tree is inside a composition, or if the fits of a pair could
        not be compared.
    """
    check_configuration(estimator)
    if isinstance(release, LeafTarget):
        release.check(estimator)
    elif isinstance(release, str) and release == "auto":
        for _, part in configured(estimator):
            if isinstance(part, BOOSTING):
                _refuse_boosting(part)
        _check_trees(estimator)


def make_target(estimator: Any, release: Any, twin: Any, weighted: bool = False) -> Any:
    """Make the target of one estimator.

    Parameters
    ----------
    estimator : estimator object
        As configured.
    release : "auto", sequence of str or LeafTarget
        What to release. "auto" takes the leaves of a tree or forest, else fitted attributes.
    twin : estimator object
        The same, fitted on public records.
    weighted : bool, default=False
        Whether the records have weights: a weighted fit is another function of the data.

    Returns
    -------
    ParameterTarget or LeafValues
        The target, which also puts released values into an estimator.
    """
    automatic = isinstance(release, str) and release == "auto"
    if automatic and type(last_step(estimator)) in TREES:
        release = LeafTarget()
    if isinstance(release, LeafTarget):
        target: Any = release.bind(estimator, twin)
    else:
        target = ParameterTarget(estimator, release, twin)
    if weighted:
        target.description += ", weighted"
    return target


def _refuse_boosting(part: Any) -> None:
    kind = "Classifier" if type(part).__name__.endswith("Classifier") else "Regressor"
    raise ValueError(
        f"{type(part).__name__} cannot be released: each of its members is fitted to what those "
        "before it got wrong on the private records, so no structure is public and one record "
        f"moves all later members. Use RandomForest{kind} or ExtraTrees{kind}, whose leaf values "
        "are released, or a linear model."
    )


def _check_trees(estimator: Any) -> None:
    """Let a tree be the whole estimator or the last step of pipelines, and nothing else."""
    last = last_step(estimator)
    if type(last) in TREES:
        LeafTarget().check(estimator)
    for _, part in configured(estimator):
        bagged = isinstance(part, BaggingClassifier | BaggingRegressor) and part.estimator is None
        if bagged or (isinstance(part, TREES) and part is not last):
            name = "DecisionTree" if bagged else type(part).__name__
            raise ValueError(
                f"{name} inside {type(estimator).__name__} cannot be released: "
                "which leaves there are is learned from the records. A tree or forest releases its "
                "leaf values when it is the whole estimator or the last step of a pipeline."
            )
