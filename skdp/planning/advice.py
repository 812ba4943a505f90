"""Advice on a plan: predictions may score more than the parameters that it releases."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from skdp.codes.encoder import LEAST_PILOTS, with_learned_code
from skdp.core.room import quiet
from skdp.core.streams import score_key, streams
from skdp.core.types import Matrix
from skdp.plan import ReleasePlan
from skdp.results.simulation import score
from skdp.results.writing import short_score

LEAST_GAIN = 0.05
"""Advise where the expected score is higher by more; try where that of exact models is."""

MOST_PILOTS = 200
"""The number of pilot pairs that are read at most."""


def advise(plan: ReleasePlan, make_target: Callable[[], Any], pilots: tuple[Matrix, Matrix]) -> str:
    """Name the release of predictions where they may score clearly more than parameters.

    The models of the pilots and of the simulated datasets are restored from their parameters and
    read at the anchors, so that only students are fitted. The sensitivity is an order statistic of
    the pilots from which the code is learned, which no promise could rest on.
    """
    expected = plan.expected_score
    if expected is None or len(pilots[0]) < LEAST_PILOTS:
        return ""
    private, found = float(expected.private.mean()), -np.inf
    least = private + LEAST_GAIN
    if expected.exact.mean() > least:
        with quiet(), suppress(Exception):  # without predictions there is no advice
            found = _score_of_predictions(plan, make_target(), *pilots)
    return f'release="predictions" may score {short_score(found)}' if found > least else ""


def _score_of_predictions(plan: Any, target: Any, values: Matrix, differences: Matrix) -> float:
    """Return the mean score of students of noisy scores, on the simulated datasets of a plan."""

    def read(value: Matrix) -> Matrix:
        fitted = plan.target.restore(value.reshape(plan.sensitivity.shape))
        return np.ravel(target.read(fitted))

    values, differences = values[:MOST_PILOTS], differences[:MOST_PILOTS]
    firsts, seconds = (np.array([*map(read, each)]) for each in (values, values - differences))
    statistic = plan.sensitivity.order_statistic
    level = statistic.k / (statistic.n_pairs + 1)
    metric, n_samples = target.output_metric(), plan.n_samples
    mechanism = with_learned_code(
        plan.mechanism, firsts, firsts - seconds, metric, n_samples=n_samples, level=level
    )
    norms = mechanism.geometry.distances(firsts, seconds)
    size = float(np.quantile(norms, level, method="higher"))
    simulation = plan.own_simulation
    rng, _ = streams(simulation.seed, score_key(simulation.n_datasets + 1))
    scores = []
    for value, test in simulation.datasets:
        student = target.restore(mechanism.release(read(value), size, rng))
        scores.append(score(student, test, plan.scoring))
    return float(np.mean(scores))
