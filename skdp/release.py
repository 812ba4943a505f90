"""The way of the data, for any function: sample, evaluate once on private data, add noise."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from skdp._data import Dataset, as_dataset, n_records
from skdp._fingerprint import REMEDY, obstacle_of
from skdp._form import Schema, canonical, describe_key
from skdp._room import evaluate_privately
from skdp._target import Target, as_target, target_key
from skdp.accounting.guarantee import PrivacyGuarantee
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.noise import byte_source
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.targets.choice import ChoiceTarget

# How the output depends on the value is learned from so many records of the oracle, in a draw of
# their own.
N_METRIC_RECORDS = 500
METRIC_DRAW = 2**31

# A promise beyond these says next to nothing: it is given, with a warning.
MOST_EPSILON = 20
MOST_GAMMA = 0.5
LEAST_CONFIDENCE = 0.5


@dataclass(frozen=True)
class Release:
    """A released value with what was promised for it.

    Parameters
    ----------
    value : object
        The private value: a float array in the shape of the target's value, for the mechanisms
        that add noise; the response that was chosen, for those that choose; or what the target
        makes of it, such as a function.
    guarantee : PrivacyGuarantee
        The promise.
    sensitivity : SensitivityEstimate or KnownSensitivity
        The sensitivity that the noise was calibrated to.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=1 / 100)
    >>> print(released.guarantee)
    epsilon=1 differential privacy, replace-one, n=100, sensitivity 0.01 asserted by the caller
    """

    value: Any
    guarantee: PrivacyGuarantee
    sensitivity: SensitivityEstimate | KnownSensitivity


def release(
    target: Target | Callable,
    X: Any,
    y: Any = None,
    *,
    mechanism: Mechanism,
    sensitivity: SensitivitySampler | SensitivityEstimate | KnownSensitivity | float,
    responses: Iterable[Any] | None = None,
    sample_weight: Any = None,
    random_state: int | None = None,
) -> Release:
    """Release the value of a function on private data.

    The function is evaluated on private data once, after everything public is settled. If
    anything is wrong before that, nothing private has been looked at; if the evaluation itself
    fails, the error says nothing of the data.

    Parameters
    ----------
    target : callable
        ``target(X)`` or ``target(X, y)``, a number or an array of fixed shape. When it has a
        parameter `random_state`, it is given an integer there. A function on a box comes in a
        :class:`BernsteinTarget`.
    X : array-like or data frame of n_samples records
        The private records.
    y : array-like of n_samples responses or None, default=None
        The private responses, if the target takes them.
    mechanism : Mechanism
        Which noise, such as ``LaplaceMechanism(epsilon=1.0)``.
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        How much the target can change: sampled now, sampled earlier for the same target and
        number of records, or proved on paper, where the records are clipped to the ranges of the
        proof. A number is a bound in the norm of the mechanism, asserted by the caller.
    responses : iterable of object or None, default=None
        For the ExponentialMechanism: what to choose from, anything at all. The target returns one
        score for each, and the value is one of them. None releases the position of the choice.
    sample_weight : array-like of n_samples weights or None, default=None
        The private weights of the records, if the target takes them after `y`.
    random_state : int or None, default=None
        Source of the noise. None takes the operating system's generator. A seed is for tests and
        examples: whoever knows it can undo the noise, and the difference of two releases that
        share it shows that of the exact values to everybody. The guarantee says so.

    Returns
    -------
    Release
        The private value, the guarantee and the sensitivity.

    Raises
    ------
    ValueError
        If the parts of the dataset differ in length, the sensitivity does not belong to this
        target, mechanism or number of records, or is zero or infinite, or if there are responses
        and nothing that chooses.
    PrivateEvaluationError
        If the target or the mechanism fails on the private data.

    Warns
    -----
    UserWarning
        If epsilon is above 20, delta above one over the number of records, gamma above 1/2, or
        the confidence below 1/2.

    See Also
    --------
    PrivateEstimator : The same for an estimator.
    BernsteinTarget : A function on a box, to be released as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, SensitivitySampler, UniformOracle, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(
    ...     np.mean,
    ...     X,
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(UniformOracle([(0, 1)]), random_state=0),
    ... )
    >>> bool(abs(released.value - X.mean()) < 0.5)
    True
    >>> released.guarantee.gamma
    0.05

    A choice, of a kind that one record moves by at most one count:

    >>> from skdp import ExponentialMechanism
    >>> def counts(X):
    ...     return [np.sum(X < 0.2), np.sum(X >= 0.2)]
    >>> chosen = release(
    ...     counts,
    ...     X,
    ...     mechanism=ExponentialMechanism(epsilon=1.0),
    ...     sensitivity=1,
    ...     responses=["low", "high"],
    ... )
    >>> chosen.value
    'high'
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            "The 'mechanism' parameter of release must be a Mechanism, such as "
            f"LaplaceMechanism(epsilon=1.0). Got {mechanism!r}."
        )
    target = _prepare_target(target, mechanism, responses)
    dataset = as_dataset((X, y, sample_weight), "The private dataset")
    lengths = [n_records(container) for container in dataset]
    if len(set(lengths)) > 1:
        raise ValueError(
            "The private dataset must have as many responses and weights as records. "
            f"Got parts of {lengths}."
        )
    noise = byte_source(random_state)
    promise = mechanism.guarantee()  # refuses its own parameters before any work is done
    check_kind_of_sensitivity(sensitivity)
    _warn_if_weak(promise, sensitivity, n_records(X))
    allow_nan = getattr(target, "allow_nan", False)
    sensitivity, schema, dataset = settle_form(sensitivity, dataset, allow_nan)
    mechanism, known = _settle_sensitivity(sensitivity, target, schema, n_records(X), mechanism)
    guarantee = replace(
        mechanism.guarantee(known.gamma),
        confidence=known.confidence,
        n_samples=n_records(X),
        oracle=known.oracle,
        assumed=known.assumed,
        seeded=random_state is not None,
    )
    mechanism.rehearse(known.shape, known.value)
    restore = getattr(target, "restore", None)
    evaluated = target if restore is None else _spare(target)
    add_noise = _spare(mechanism).release
    value = evaluate_privately(  # the one private evaluation
        known.bounded(evaluated),
        copy.deepcopy(dataset),  # a target may write into it, and what it writes is not noised
        seed=int.from_bytes(noise.bytes(4), "little") >> 1,
        shape=known.shape,
        add_noise=lambda exact: add_noise(exact, known.value, noise),
    )
    return Release(value if restore is None else restore(value), guarantee, known)


def _spare(thing: Any) -> Any:
    """Copy what is to see private data: whatever it keeps of them, the original does not."""
    try:
        return copy.deepcopy(thing)
    except Exception:  # it holds a lock, a file or the like
        return thing


def check_kind_of_sensitivity(sensitivity: Any) -> None:
    """Refuse what is no sensitivity.

    Parameters
    ----------
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        As given by the user.

    Raises
    ------
    TypeError
        If it is something else, such as the oracle of a sampler.
    """
    kinds = SensitivitySampler | SensitivityEstimate | KnownSensitivity | Real
    if not isinstance(sensitivity, kinds) or isinstance(sensitivity, bool):
        hint = " Pass an oracle as SensitivitySampler(oracle)." if callable(sensitivity) else ""
        raise TypeError(
            "The 'sensitivity' parameter must be a SensitivitySampler, a SensitivityEstimate, a "
            "KnownSensitivity or a number. Got an object of type "
            f"{type(sensitivity).__name__}.{hint}"
        )


def _warn_if_weak(promise: PrivacyGuarantee, sensitivity: Any, n_samples: int) -> None:
    """Point out a promise that says next to nothing, unless it is said to be none."""
    if isinstance(sensitivity, SensitivitySampler):
        sensitivity = sensitivity.plan(n_samples).order_statistic
    gamma = getattr(sensitivity, "gamma", 0.0)  # a number has none
    confidence = getattr(sensitivity, "confidence", None)
    rules = {
        f"epsilon={promise.epsilon:g} is above {MOST_EPSILON}, so that one record may make an "
        "outcome 485 million times as likely and more. Choose one below 10, best around 1": (
            promise.epsilon > MOST_EPSILON
        ),
        f"delta={promise.delta:g} is above one over the number of records, {1 / n_samples:.3g}. "
        "To publish a record at random would keep such a promise. Choose a delta far below": (
            promise.delta > 1 / n_samples
        ),
        f"gamma={gamma:g} is above {MOST_GAMMA:g}, so that the promise may hold for less than half "
        "of the oracle's pairs. Choose one of .1 or less, with more pairs": gamma > MOST_GAMMA,
        f"confidence={confidence} is below {LEAST_CONFIDENCE:g}, so that most samples of the "
        "sensitivity may break it. Choose one of .9 or more, with more pairs": (
            confidence is not None and confidence < LEAST_CONFIDENCE
        ),
    }
    for message, is_weak in rules.items():
        if is_weak and not math.isinf(promise.epsilon):
            warnings.warn(f"The promise is weak: {message}.", UserWarning, stacklevel=3)


def settle_form(sensitivity: Any, dataset: Dataset, allow_nan: bool) -> tuple[Any, Schema, Dataset]:
    """Bring the private dataset into the form in which the sensitivity is sampled.

    Parameters
    ----------
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        As given by the user.
    dataset : tuple of containers
        The private dataset, as it was passed. Only its form is looked at.
    allow_nan : bool
        Whether entries of X may be missing.

    Returns
    -------
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        A sampler with its seed drawn, since all that is public follows from it.
    schema : Schema
        The form.
    dataset : tuple of containers
        The private dataset in this form.
    """
    if isinstance(sensitivity, SensitivitySampler):
        sampler = sensitivity.with_fixed_seed()
        return sampler, *sampler.agree(dataset, allow_nan)
    dataset = canonical(dataset)
    schema = Schema.of(dataset, allow_nan)
    if isinstance(sensitivity, KnownSensitivity):
        sensitivity.check_records(*dataset)
    if isinstance(sensitivity, SensitivityEstimate):
        schema = schema.agree_with_key(sensitivity.form)
    return sensitivity, schema, schema.convert(dataset, "The private dataset")


def _prepare_target(
    target: Target | Callable, mechanism: Mechanism, responses: Iterable[Any] | None
) -> Target:
    """Attach the responses, and refuse a target that cannot be had from the mechanism."""
    target = as_target(target)
    chooses = isinstance(mechanism, ExponentialMechanism)
    if responses is not None:
        if not chooses:
            raise ValueError(
                "The 'responses' parameter of release is for a mechanism that chooses, such as "
                f"ExponentialMechanism. Got {type(mechanism).__name__}."
            )
        return ChoiceTarget(target, responses)
    if chooses and hasattr(target, "restore") and not isinstance(target, ChoiceTarget):
        raise ValueError(
            f"{type(mechanism).__name__} chooses one of several responses, and here numbers are "
            f"to be released: {target.description}. Use a mechanism that adds noise, such as "
            "LaplaceMechanism."
        )
    return target


def _settle_sensitivity(
    sensitivity: Any, target: Target, schema: Schema, n_samples: int, mechanism: Mechanism
) -> tuple[Mechanism, SensitivityEstimate | KnownSensitivity]:
    """Sample where it is to be sampled, in the basis of the mechanism, and refuse misfits."""
    key = None
    if isinstance(sensitivity, SensitivitySampler):
        mechanism = _learn_basis(mechanism, sensitivity, target, n_samples, schema)
        sensitivity = sensitivity.sample(target, n_samples, mechanism.norm, schema)
        key = sensitivity.key  # it is this target's, though to be like nothing else
    elif isinstance(sensitivity, Real):
        sensitivity = KnownSensitivity(float(sensitivity), mechanism.norm_name, n_samples)
    mechanism = mechanism.with_basis(sensitivity.basis)
    if isinstance(sensitivity, KnownSensitivity):
        sensitivity.for_norm(mechanism.norm_name, n_samples)
    else:
        key = key or target_key(target)
        _check_made_for(sensitivity, target, schema, n_samples, mechanism, key)
    _check_usable(sensitivity)
    return mechanism, sensitivity


def _learn_basis(
    mechanism: Any, sampler: SensitivitySampler, target: Any, n_samples: int, schema: Schema
) -> Any:
    """Fix the basis before a pair is measured: by learning it from pilot pairs, where asked."""
    if not mechanism.learns_basis:
        return mechanism.with_basis(None)
    differences = sampler.pilot_differences(target, n_samples, schema)
    metric = None
    if hasattr(target, "output_metric"):
        public = sampler.public_dataset(N_METRIC_RECORDS, schema, attempt=METRIC_DRAW)
        metric = target.output_metric(*public)
    return mechanism.fit_basis(differences, metric)


def _check_made_for(
    sensitivity: SensitivityEstimate,
    target: Target,
    schema: Schema,
    n_samples: int,
    mechanism: Mechanism,
    key: str,
) -> None:
    rules = {
        "number of records": (sensitivity.n_samples, n_samples),
        "norm": (sensitivity.norm_name, mechanism.norm_name),
    }
    for what, (made_for, needed) in rules.items():
        if made_for != needed:
            raise ValueError(
                f"The 'sensitivity' was made for another {what}: {made_for}. This release has "
                f"{needed}. Sample the sensitivity of this release."
            )
    if sensitivity.form != schema.key:
        raise ValueError(
            "The 'sensitivity' was made for records of another form: "
            f"{describe_key(sensitivity.form) or 'unknown'}. This release has "
            f"{describe_key(schema.key)}. Bring the data into that form, or sample the sensitivity "
            "of this release."
        )
    if sensitivity.key != key:
        obstacle = obstacle_of(key) or obstacle_of(sensitivity.key)
        alike = sensitivity.target == target.description
        raise ValueError(
            f"The 'sensitivity' was made for another target: {sensitivity.target}. This release "
            f"has {target.description}{', of other code or other values' if alike else ''}. "
            "Sample the sensitivity of this release."
            + (f" No estimate can be kept for it, since {obstacle}. {REMEDY}" if obstacle else "")
        )


def _check_usable(sensitivity: SensitivityEstimate | KnownSensitivity) -> None:
    if sensitivity.value == 0:
        raise ValueError(
            "The sensitivity is zero, so no noise would be added and the exact value would be "
            "shown. Nothing is released. If it was sampled, the target did not change on enough of "
            "the oracle's pairs: use an oracle with more varied records, or a smaller gamma."
        )
    if isinstance(sensitivity, SensitivityEstimate) and sensitivity.is_rounding:
        raise ValueError(
            f"The sampled sensitivity, {sensitivity.value:.3g}, is one of rounding errors: on "
            f"{sensitivity.n_rounding} of {sensitivity.order_statistic.n_pairs} pairs no number of "
            "the target changed by more than rounding explains. Nothing is released. Use an oracle "
            "with more varied records, a smaller gamma, or a target without large constants."
        )
    if math.isinf(sensitivity.value):
        assert isinstance(sensitivity, SensitivityEstimate)
        causes = "; ".join(
            f"{count} with {cause!r}" for cause, count in sensitivity.failures.items()
        )
        n_pairs = sensitivity.order_statistic.n_pairs
        n_failed = sum(sensitivity.failures.values())
        larger = ", or allow a larger gamma" if n_failed < n_pairs else ""
        raise ValueError(
            f"The sampled sensitivity is infinite: of {n_pairs} pairs {n_failed} failed "
            f"({causes}), and the promise leaves room for "
            f"{n_pairs - sensitivity.order_statistic.k}. Nothing is released. "
            f"Mend the oracle or the target{larger}."
        )
