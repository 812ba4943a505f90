"""Make a plan of a target and a sensitivity: learn a code, sample pairs, fix the promise."""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.checks import shown, warn
from skdp.core.dataset import Dataset
from skdp.core.guarantee import weaknesses
from skdp.core.identity import content_of, key_of
from skdp.core.plain import gaps_in
from skdp.core.room import spare
from skdp.core.schema import Schema
from skdp.core.target import Target
from skdp.estimators.public_fit import synthetic_dataset
from skdp.mechanisms.base import Mechanism
from skdp.plan import ReleasePlan, check_chooses, of_all
from skdp.planning.learning import learn_code, learn_within
from skdp.planning.worth import warn_of_worth
from skdp.results.names import check_names
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.calibration import OrderStatistic
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.gaps import check_gaps
from skdp.sensitivity.made_up import try_on_made_up
from skdp.sensitivity.sampler import SensitivitySampler


def check_mechanism(mechanism: object, owner: str) -> None:
    """Refuse what is no mechanism."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"The 'mechanism' parameter of {owner} must be a Mechanism, such as "
            f"LaplaceMechanism(epsilon=1.0). Got {shown(mechanism)}."
        )


def without_code(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism that learns no code, and takes the better one of its norms."""
    own = mechanism.get_params(deep=False)
    settings = {"code": None, "norm": "auto"}
    return clone(mechanism).set_params(**{name: settings[name] for name in settings if name in own})


def least_deviation(mechanism: Mechanism, n_values: int, sensitivity: float) -> float:
    """Return the least standard deviation of n numbers, given their sensitivity in L2."""
    found = [math.inf]
    for each in mechanism.alternatives:
        if each.most_values is None or n_values <= each.most_values:
            norm = math.sqrt(n_values) ** (each.geometry.order == 1)
            found.append(each.unit_deviation(n_values) * norm * sensitivity)
    return min(found)


def least_spend(
    mechanism: Mechanism,
    sensitivity: object,
    n_samples: int,
    n_alternatives: int = 1,
) -> dict[str, Any]:
    """Return what a release spends at least, whatever its sensitivity will be."""
    promise, level = mechanism.guarantee(), sensitivity
    if isinstance(level, SensitivitySampler):
        level = level.plan(n_samples).order_statistic
    if isinstance(level, OrderStatistic | SensitivityEstimate | KnownSensitivity):
        gamma, confidence = of_all(level.gamma, level.confidence, n_alternatives)
        promise = replace(mechanism.guarantee(gamma), confidence=confidence)
    return {"guarantee": promise, "law": mechanism.noise_law}


def make_plan(
    target: Target,
    schema: Schema,
    example: Dataset,
    *,
    mechanism: Mechanism,
    sensitivity: Any,
    derived: bool = False,
    **others: Any,
) -> ReleasePlan:
    """Make a plan, and sample its sensitivity where it is not known.

    A `derived` sensitivity bounds this target alone. `others` are fields of the plan.
    """
    start, n_samples = perf_counter(), example.n_records
    mechanism = clone(mechanism)
    check_chooses(mechanism, target)
    oracle, sampled = sensitivity.draws_from, isinstance(sensitivity, SensitivitySampler)
    is_known = isinstance(sensitivity, KnownSensitivity)
    has_records = sampled or (is_known and oracle is not None) or sensitivity.geometry.code
    if getattr(mechanism, "code", None) == "learned" and not has_records:
        raise ValueError(
            f"The 'code' parameter of {type(mechanism).__name__} must not be 'learned' where there "
            "are no public records to learn it from. Pass a SensitivitySampler, or a bound with a "
            "'prior'."
        )
    gaps = None
    if oracle is not None and not is_known:
        gaps = frozenset(gaps_in(sensitivity.public_dataset(n_samples, schema).X))
        check_gaps(example.X, gaps)
    level = sensitivity.plan(n_samples).order_statistic if sampled else sensitivity
    promise = replace(mechanism.guarantee(level.gamma), confidence=level.confidence)
    for weakness in weaknesses(promise, n_samples):
        warn(f"The promise is weak: {weakness}.")
    if sampled and mechanism.learns_code:
        mechanism = learn_code(mechanism, sensitivity, target, n_samples, schema)
    options = sensitivity.options(mechanism)
    if is_known and oracle is not None and mechanism.learns_code:
        options = learn_within(options, target, n_samples, schema)
    options = [known.settle(target, n_samples, schema, each) for known, each in options]
    shape, within = options[0][0].shape, None
    if is_known and not target.fits_estimator:  # what fits may fail on made-up records
        tried, within = try_on_made_up(target, schema, sensitivity)
        shape = tried if shape is None else shape
    limited = any(each.geometry.code or each.most_values for _, each in options)
    if shape is None and limited:  # too many numbers may be refused
        shape = _shape_on_synthetic(target, example, others.get("classes"))
    check_names(others.get("names"), shape)
    known, mechanism = _best(options, shape)
    if derived:
        known = replace(known, key=key_of(target))
    if within is None:
        code = mechanism.geometry.code
        within = np.zeros((1 if code is None else code.size,) if shape is None else shape)
    rehearse(mechanism, within, known.value)
    plan = ReleasePlan(
        target,
        schema,
        n_samples,
        mechanism,
        known,
        oracle=oracle,
        seconds=0.0 if oracle is None else perf_counter() - start,
        settled=(target, known, content_of(target)),
        gaps=gaps,
        **others,
    )
    warn_of_worth(plan)
    return plan


class _OnlyBytes:
    """A public source of noise with the one method that the operating system's has."""

    def __init__(self) -> None:
        self.bytes = np.random.default_rng(0).bytes


def rehearse(mechanism: Mechanism, public: NDArray[np.float64], sensitivity: float) -> None:
    """Release a public value, so that a mechanism fails before private data are read."""
    released, _ = mechanism.release_with_errors(public, sensitivity, _OnlyBytes())
    if np.isnan(released).any():
        raise ValueError(
            f"The value of records within the ranges is too large for a sensitivity of "
            f"{sensitivity:g}: it must be less than 2**44 times as large. Subtract the middle of "
            "the ranges from the records, and add it to what is released."
        )


def _shape_on_synthetic(
    target: Target, example: Dataset, classes: list[NDArray] | None
) -> tuple[int, ...] | None:
    """Return the shape of the value of made-up records; None where the target fails on them."""
    try:
        return np.shape(spare(target)(*synthetic_dataset(example, classes).parts, seed=0))
    except Exception:  # the private records may suit the target better
        return None


def _best(options: list[Any], shape: tuple[int, ...] | None) -> Any:
    """Return the sensitivity and mechanism with the least expected error of a number."""
    size = None if shape is None else math.prod(shape)

    def is_possible(mechanism: Mechanism) -> bool:
        code = mechanism.geometry.code
        n_released = size if code is None else code.n_released
        most = mechanism.most_values
        return most is None or (n_released is not None and n_released <= most)

    def rank(option: Any) -> tuple[float, float]:
        known, mechanism = option
        deviation = mechanism.unit_deviation(size or 1)
        return -mechanism.share_learned(known.value), deviation * known.value

    possible = [each for each in options if is_possible(each[1])] or options[:1]
    return possible[0] if len(possible) == 1 else min(possible, key=rank)
