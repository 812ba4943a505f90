"""The way of the data, for any function: sample, evaluate once on private data, add noise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._data import Dataset, Schema, as_dataset, n_records
from skdp._target import Target, as_target
from skdp.accounting.guarantee import PrivacyGuarantee
from skdp.exceptions import PrivateEvaluationError
from skdp.mechanisms.base import ByteSource, Mechanism
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.noise import byte_source
from skdp.sensitivity.adapters import as_oracle, like_private
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.targets.choice import ChoiceTarget

# How the output depends on the value is learned from so many records of the oracle, in a draw of
# their own.
N_METRIC_RECORDS = 500
METRIC_DRAW = 2**31


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
    epsilon=1 differential privacy, replace-one, n=100, sensitivity known
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
    random_state: Any = None,
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
        number of records, or proved on paper. A number is a bound in the norm of the mechanism.
    responses : iterable of object or None, default=None
        For the ExponentialMechanism: what to choose from, anything at all. The target returns one
        score for each, and the value is one of them. None releases the position of the choice.
    sample_weight : array-like of n_samples weights or None, default=None
        The private weights of the records, if the target takes them after `y`.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Source of the noise. None takes the operating system's generator. A seed is for tests and
        examples: whoever knows it can undo the noise, and the guarantee says so.

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
        If the target fails on the private data.

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
    mechanism.guarantee()  # refuses its own parameters before any work is done
    mechanism, known = _settle_sensitivity(sensitivity, target, dataset, mechanism)
    guarantee = replace(
        mechanism.guarantee(known.gamma),
        confidence=known.confidence,
        n_samples=n_records(X),
        oracle=known.oracle,
        seeded=random_state is not None,
    )
    mechanism.rehearse(known.shape, known.value)
    exact = _evaluate_privately(target, dataset, known.shape, noise)  # the one private evaluation
    failure: Exception | None = None
    try:
        value = mechanism.release(exact, known.value, noise)
    except Exception as error:
        failure = error.with_traceback(None)  # the variables of the mechanism hold the value
        failure.__cause__ = failure.__context__ = None
    del exact
    if failure is not None:
        raise failure
    restore = getattr(target, "restore", None)
    return Release(value if restore is None else restore(value), guarantee, known)


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
    sensitivity: Any, target: Target, dataset: Dataset, mechanism: Mechanism
) -> tuple[Mechanism, SensitivityEstimate | KnownSensitivity]:
    """Sample where it is to be sampled, in the basis of the mechanism, and refuse misfits."""
    n_samples = n_records(dataset[0])
    if isinstance(sensitivity, SensitivitySampler):
        schema = Schema.of(dataset, allow_nan=getattr(target, "allow_nan", False))
        sampler = sensitivity.with_fixed_seed()  # pilot pairs and pairs follow from one seed
        sampler.set_params(oracle=like_private(as_oracle(sampler.oracle), dataset[0]))
        mechanism = _learn_basis(mechanism, sampler, target, n_samples, schema)
        sensitivity = sampler.sample(target, n_samples, mechanism.norm, schema)
    elif isinstance(sensitivity, Real) and not isinstance(sensitivity, bool):
        sensitivity = KnownSensitivity(float(sensitivity), mechanism.norm_name, n_samples)
    else:
        check_kind_of_sensitivity(sensitivity)
    mechanism = mechanism.with_basis(sensitivity.basis)
    if isinstance(sensitivity, KnownSensitivity):
        sensitivity.for_norm(mechanism.norm_name, n_samples)
    else:
        _check_made_for(sensitivity, target, n_samples, mechanism)
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
    n_samples: int,
    mechanism: Mechanism,
) -> None:
    rules = {
        "number of records": (sensitivity.n_samples, n_samples),
        "norm": (sensitivity.norm_name, mechanism.norm_name),
        "target": (sensitivity.target, target.description),
    }
    for what, (made_for, needed) in rules.items():
        if made_for != needed:
            raise ValueError(
                f"The 'sensitivity' was made for another {what}: {made_for}. This release has "
                f"{needed}. Sample the sensitivity of this release."
            )


def _check_usable(sensitivity: SensitivityEstimate | KnownSensitivity) -> None:
    if sensitivity.value == 0:
        raise ValueError(
            "The sensitivity is zero, so no noise would be added and the exact value would be "
            "shown. Nothing is released. If it was sampled, the target did not change on enough of "
            "the oracle's pairs: use an oracle with more varied records, or a smaller gamma."
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


def _evaluate_privately(
    target: Target, dataset: Dataset, shape: tuple[int, ...] | None, noise: ByteSource
) -> NDArray[np.float64]:
    """Evaluate the target on private data, and let nothing but its value out.

    Warnings are silenced and the error is raised outside the handler, so that neither a message
    nor a traceback with its local variables carries what the fit has seen.
    """
    seed = int.from_bytes(noise.bytes(4), "little") >> 1
    value: Any = None
    failure = None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value = np.asarray(target(*dataset, seed=seed), dtype=np.float64)
            failure = _describe_flaw(value, shape)
        except Exception as error:
            failure = type(error).__name__
    if failure is not None:
        value = None
        advice = (
            "Try it on public records first."
            if shape is None
            else "It worked on public records: look there for what the private ones may lack, such "
            "as a class or variation in a column."
        )
        raise PrivateEvaluationError(
            f"The target failed on the private data ({failure}); nothing is released. Details are "
            f"withheld, since they may describe the data. {advice}"
        )
    return value


def _describe_flaw(value: NDArray[np.float64], shape: tuple[int, ...] | None) -> str | None:
    if shape is not None and value.shape != shape:
        return "a value of another shape than on the oracle's records"
    return None if np.isfinite(value).all() else "a value that is not finite"
