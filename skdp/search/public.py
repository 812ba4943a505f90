"""Public model selection: choose on records of the oracle, which costs nothing."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp.core.checks import check_count, shown
from skdp.core.oracle import Oracle
from skdp.core.room import undisturbed
from skdp.core.types import Scoring
from skdp.estimator import PrivateEstimator
from skdp.exceptions import UtilityWarning
from skdp.oracles.adapters import as_oracle
from skdp.oracles.random_task import RandomTaskOracle
from skdp.search.candidates import list_candidates
from skdp.sensitivity.sampler import SensitivitySampler


@undisturbed
def public_search(
    estimator: PrivateEstimator,
    param_grid: Mapping[str, Sequence] | Sequence[Mapping[str, Sequence]],
    n_samples: int,
    *,
    test_oracle: object = None,
    scoring: Scoring = None,
    n_datasets: int = 10,
    random_state: int | None = None,
) -> tuple[PrivateEstimator, dict[str, Any]]:
    """Choose hyper-parameters on records of the oracle, at no cost in privacy.

    Every candidate is released with noise on datasets of the oracle, and the released model is
    scored. So a parameter of the mechanism may be chosen, too. The choice is as good as the oracle.

    Parameters
    ----------
    estimator : PrivateEstimator
        With a SensitivitySampler, whose oracle yields the datasets.
    param_grid : dict of str to sequence, or list of such dicts
        The candidates: any parameters of `estimator`, such as ``"estimator__C"`` or
        ``"mechanism__code"``, but not its sampler.
    n_samples : int
        Number of private records.
    test_oracle : oracle or None, default=None
        Source of the records on which a released estimator is scored. None takes further records
        of the same draw. If the oracle resamples a table, give another table here, since scores on
        records of the fit prefer what overfits. A RandomTaskOracle is refused.
    scoring : str, callable or None, default=None
        One score, as in scikit-learn. None takes the method `score` of what is released.
    n_datasets : int, default=10
        Number of datasets on which each candidate is released and scored.
    random_state : int or None, default=None
        Public seed of all draws. The sensitivities are sampled apart from those of a later fit, so
        that the choice does not bias them.

    Returns
    -------
    estimator : PrivateEstimator
        A copy with the best candidate, to be fitted.
    results : dict
        The candidates under "params", and the mean and the standard deviation of their scores under
        "mean_test_score" and "std_test_score".

    Raises
    ------
    TypeError
        If `estimator` is no PrivateEstimator with a SensitivitySampler.
    ValueError
        As :meth:`PrivateEstimator.plan` for any of the candidates, or if a score is NaN.

    See Also
    --------
    PrivateSearchCV : Chooses on the private records.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler
    >>> from skdp import public_search
    >>> from sklearn.datasets import make_regression
    >>> def oracle(n_samples, rng):
    ...     seed = np.random.RandomState(rng.bit_generator)
    ...     return make_regression(n_samples, n_features=3, noise=50.0, random_state=seed)
    >>> model = PrivateEstimator(
    ...     Ridge(),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, gamma=0.2),
    ... )
    >>> grid = {"estimator__alpha": [1.0, 100.0]}
    >>> best, results = public_search(model, grid, 100, n_datasets=2, random_state=0)
    >>> best.estimator.alpha in (1.0, 100.0), len(results["mean_test_score"])
    (True, 2)
    """
    rng = np.random.default_rng(random_state)
    sampler = estimator.sensitivity if isinstance(estimator, PrivateEstimator) else None
    if not isinstance(sampler, SensitivitySampler):
        raise TypeError(
            "The 'estimator' parameter of public_search must be a PrivateEstimator whose "
            "sensitivity is a SensitivitySampler, from whose oracle the datasets come. Got "
            f"{shown(estimator)} of {shown(sampler)}."
        )
    candidates = list_candidates(estimator, param_grid, "public_search")
    check_count("n_datasets", n_datasets, "public_search")
    seed, test = simulation_seed(rng), as_test_oracle(test_oracle, "public_search")
    models = [clone(estimator).set_params(**clone(each, safe=False)) for each in candidates]
    found = []
    for model in models:
        sampler = clone(model.sensitivity).set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)  # the scores are compared here
            plan = clone(model).set_params(sensitivity=sampler).plan(n_samples)
        simulation = plan.simulate(n_datasets, seed, test)
        found.append(simulation and simulation.scores(plan.mechanism, scoring))
    scores = np.array([np.full(1, np.nan) if each is None else each.private for each in found])
    means = scores.mean(axis=1)
    if not np.isfinite(means).all():
        raise ValueError(
            f"The 'scoring' of public_search must give each candidate a number. Got {means}."
        )
    candidates = [clone(each, safe=False) for each in candidates]
    scored = {"mean_test_score": means, "std_test_score": scores.std(axis=1)}
    return models[int(np.argmax(means))], {"params": candidates} | scored


def simulation_seed(rng: np.random.Generator) -> int:
    """Draw a seed that no fit has: a choice by scores then does not bias its sensitivity."""
    return int(rng.integers(2**62)) + 2**62


def as_test_oracle(test_oracle: object, owner: str) -> Oracle | None:
    """Return an oracle of records to score on, which follow one rule in all draws."""
    if isinstance(test_oracle, RandomTaskOracle):
        raise ValueError(
            f"The 'test_oracle' parameter of {owner} must draw all records by one rule. Got a "
            "RandomTaskOracle, which makes a new one in each draw. Leave it out."
        )
    return None if test_oracle is None else as_oracle(test_oracle)
