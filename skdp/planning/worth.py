"""What a release is worth: made-up records to try it on, a warning if it is little, advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skdp.codes.encoder import LEAST_PILOTS, with_learned_code
from skdp.core.checks import warn
from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.room import quiet
from skdp.core.schema import DatasetForm
from skdp.core.streams import score_key, streams
from skdp.core.types import Estimator, Matrix
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline
from skdp.estimators.clip import ClipBox, ClipNorm, ranges_of
from skdp.estimators.predictions import Predictions
from skdp.estimators.public_fit import in_container_of
from skdp.exceptions import UtilityWarning
from skdp.oracles.drawing import draw
from skdp.oracles.random_task import RandomTaskOracle
from skdp.plan import ReleasePlan
from skdp.results.names import short_score

N_MADE_UP = 500  # number of different records that are made up
LEAST_SHARE = 0.1  # warn when a smaller share of the model is learned from private data
# Advise where the expected score is higher by more; try where that of exact models is.
LEAST_GAIN = 0.05
MOST_PILOTS = 200  # the number of pilot pairs that are read at most


def made_up_oracle(
    estimator: Estimator,
    example: Dataset,
    schema: DatasetForm,
    classes: list[NDArray] | None,
    y_range: tuple[float, float] | None,
) -> Oracle | None:
    """Return an oracle of records in the range of the first step, with random rules, if any."""
    if np.ndim(example.y) != 1 or issparse(example.X) or not (classes or y_range):
        return None
    n_features, rng = example.X.shape[1], np.random.default_rng(0)
    rules: dict[str, Any] = {}
    if classes:
        rules = {"classes": classes[0], "least_share": 0.8 / len(classes[0])}
    if y_range:
        low, high = y_range
        rules |= {"y_mean": (low + high) / 2, "y_scale": (high - low) / 8}  # seldom outside
    try:
        center, scale = _range_of_first_step(estimator, n_features)
        values = center + scale * math.sqrt(12) * (rng.random((N_MADE_UP, n_features)) - 0.5)
        oracle = RandomTaskOracle(in_container_of(example.X, values), **rules)
        draw(oracle, example.n_records, rng, schema=schema)
    except ValueError:  # too few records for the classes, or no number fits a column
        return None
    return oracle


def _range_of_first_step(
    estimator: Estimator, n_features: int
) -> tuple[Matrix | float, Matrix | float]:
    """Return mean and standard deviation of the columns that the first step is made for."""
    first = estimator.steps[0][1] if is_pipeline(estimator) else estimator
    first = first.estimator if is_frozen(first) else first
    match first:
        case ClipBox():
            low, high = ranges_of(first, n_features)
            return (low + high) / 2, (high - low) / math.sqrt(12)
        case ClipNorm():
            return 0.0, first.radius / math.sqrt(n_features)
    mean, scale = getattr(first, "mean_", None), getattr(first, "scale_", None)
    return (0.0, 1.0) if mean is None or scale is None else (mean, scale)


def warn_of_worth(plan: ReleasePlan) -> None:
    """Warn, before anything is paid for, of a release that adds little.

    Class tables of labels warn alone, by n epsilon / d.
    """
    expected, share = plan.expected_score, plan.share_learned
    has_tables = plan.target.expected_score is not None
    alone = "public records alone" if expected is None else expected.alone
    if share < (LEAST_SHARE if expected is None else LEAST_SHARE / 10):
        said = f"{share:.1%} of what public fits leave open is learned from the private data"
    elif expected is not None and not (
        expected.is_worth or (has_tables and expected.scoring == "accuracy")
    ):
        said = f"expected {expected.scoring}: {expected.line.removeprefix('R² ')}"
        if expected.rows and expected.expect is None:
            said = f"it beats {expected.break_evens}"
    else:
        return
    hints = [f"Instead, {plan.advice}."] * bool(plan.advice)
    if expected is not None and not expected.could_be:
        hints += ["An exact model is not clearly better there either."]
    usual = (
        "A larger epsilon, more records, fewer numbers (PublicComponents in front), "
        "stronger regularization or a solver with a smaller tol would help."
    )
    if has_tables:
        usual = "A larger epsilon, more records or fewer columns would help."
    remedy = " ".join(hints) or usual
    warn(f"The release may be worth no more than {alone}: {said}. {remedy}", UtilityWarning)


def advise(plan: ReleasePlan, make_target: Callable[[], Any], pilots: tuple[Matrix, Matrix]) -> str:
    """Name the release of predictions where they may score clearly more than parameters."""
    expected = plan.expected_score
    if expected is None or len(pilots[0]) < LEAST_PILOTS:
        return ""
    least, found = float(expected) + LEAST_GAIN, -np.inf
    exact = replace(expected, private=expected.exact, errors=0.0)
    if float(exact) > least:
        with quiet(), suppress(Exception):  # without predictions there is no advice
            found = _score_of_predictions(plan, make_target(), *pilots)
    if found <= least:
        return ""
    scores = f"{short_score(found)} where this scores {short_score(float(expected))}"
    return f'release="predictions" may score {scores}{", on average" * (expected.expect is None)}'


def _score_of_predictions(
    plan: Any, target: Predictions, values: Matrix, differences: Matrix
) -> float:
    """Return the expected score of students of noisy scores, on the tasks of a plan."""

    def read(value: Matrix) -> Matrix:  # models are restored, so that only students are fitted
        fitted = plan.target.restore(value.reshape(plan.sensitivity.shape))
        scores = target.read(fitted)
        return np.ravel(target.value_of(scores, scores.reshape(len(scores), -1)))

    values, differences = values[:MOST_PILOTS], differences[:MOST_PILOTS]
    firsts, seconds = (np.array([*map(read, each)]) for each in (values, values - differences))
    # of the pilots from which the code is learned: no promise could rest on it
    statistic = plan.sensitivity.order_statistic
    level = statistic.k / (statistic.n_pairs + 1)
    metric, n_samples = target.output_metric(), plan.n_samples
    mechanism = with_learned_code(
        plan.mechanism, firsts, firsts - seconds, metric, n_samples=n_samples, level=level
    )
    pairs = (mechanism, firsts, seconds), (plan.mechanism, values, values - differences)
    norms = [each.geometry.distances(first, second) for each, first, second in pairs]
    size, own = (float(np.quantile(each, level, method="higher")) for each in norms)
    size *= max(1.0, plan.sensitivity.value / own)  # pilots have no strata, which add noise
    simulation = plan.simulate_tasks() or plan.simulate()
    rng, _ = streams(simulation.seed, score_key(simulation.n_datasets + 1))

    def release(value: Matrix, _: Matrix | None) -> list[Estimator]:
        released = mechanism.release(read(value), size, rng)
        return [target.with_noise(mechanism, size, None).restore(released)]

    return float(simulation.scores_of(release, plan.scoring).expecting(plan.expect))
