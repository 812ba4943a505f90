"""ReleasePlan: what a release would be, made of public things; to execute it is to release."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.dataset import Dataset, as_dataset, n_records
from skdp.core.fingerprint import REMEDY, obstacle_of
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.room import evaluate_privately
from skdp.core.schema import Schema, canonical, describe_key
from skdp.core.target import Target, replaces, target_key
from skdp.estimators.validation import check_labels
from skdp.functions.choice import ChoiceTarget
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.sensitivity.trial import check_is_public

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


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """What a release would be: everything that is settled before private data is looked at.

    A plan is made by :func:`plan_release` or :meth:`PrivateEstimator.plan`, without private data,
    and is public throughout. It can be printed, pickled and executed later, on another machine and
    more than once; each execution is a release of its own.

    Parameters
    ----------
    target : Target
        What would be evaluated.
    schema : Schema
        The form of the data: containers, columns and dtypes.
    n_samples : int
        Number of records of the data.
    mechanism : Mechanism
        Which noise would be added, its basis fixed.
    sensitivity : SensitivityEstimate or KnownSensitivity
        What the noise is calibrated to.
    oracle : Oracle or None, default=None
        The source of records that was sampled; None where nothing was.
    classes : list of ndarray, or None, default=None
        The public class labels, output by output.
    prepare : callable or None, default=None
        ``prepare(X, y, sample_weight)`` brings data into the form that they have in `fit`.
    seconds : float, default=0.0
        How long sampling took.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        What a release would promise, with noise from the operating system.
    n_evaluations : int
        How often the target was evaluated on public records, or would have been without a closed
        form: twice a pair. An execution adds one.
    standard_errors : ndarray, dict of str to ndarray, or None
        Standard deviations of the noise in each number that would be released, in its own unit and
        before any repair: by attribute where those of an estimator are released, else in the shape
        of the value. None for a mechanism that adds no noise of a known law, or to very many
        numbers.

    See Also
    --------
    plan_release : Makes the plan of a function.
    PrivateEstimator : Its method `plan` makes that of an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, SensitivitySampler, UniformOracle, plan_release
    >>> plan = plan_release(
    ...     np.mean,
    ...     n_samples=100,
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(UniformOracle([(0, 1)]), random_state=0),
    ... )
    >>> print(plan)
    ReleasePlan of numpy.mean
      promise: (epsilon=1, gamma=0.05)-random differential privacy, replace-one, n=100, ...
      data: 100 records, X numpy.ndarray of ['float64']
      evaluations: 398 on public records (... s), then 1 on the data
      standard error of the noise: 0.011
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> plan.execute(X).guarantee == plan.guarantee
    True
    """

    target: Target
    schema: Schema
    n_samples: int
    mechanism: Mechanism
    sensitivity: SensitivityEstimate | KnownSensitivity
    oracle: Any = field(default=None, repr=False)
    classes: list[NDArray] | None = None
    prepare: Callable[..., Dataset] | None = field(default=None, repr=False)
    seconds: float = 0.0

    def execute(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, random_state: int | None = None
    ) -> Release:
        """Release: evaluate the target once on private data, and add the noise.

        Parameters
        ----------
        X : array-like or data frame of n_samples records
            The private records, in the form of the plan.
        y : array-like of n_samples responses or None, default=None
            The private responses, if the target takes them.
        sample_weight : array-like of n_samples weights or None, default=None
            The private weights of the records, if the target takes them.
        random_state : int or None, default=None
            Seed of the noise. None takes the operating system's generator. A seed is for tests and
            examples: whoever knows it can undo the noise, and the guarantee says so.

        Returns
        -------
        Release
            The private value, the guarantee and the sensitivity.

        Raises
        ------
        ValueError
            If the data are of another form or number than those of the plan, or hold a label that
            is not public. Nothing is then evaluated.
        PrivateEvaluationError
            If the target or the mechanism fails on the private data.
        """
        noise = byte_source(random_state)
        dataset = self._check(X, y, sample_weight)
        add_noise = _spare(self.mechanism).release
        value = evaluate_privately(  # the one private evaluation
            self.sensitivity.bounded(_spare(self.target)),
            copy.deepcopy(dataset),  # a target may write into it, and what it writes is not noised
            seed=int.from_bytes(noise.bytes(4), "little") >> 1,
            shape=self.sensitivity.shape,
            add_noise=lambda exact: add_noise(exact, self.sensitivity.value, noise),
        )
        guarantee = replace(self.guarantee, seeded=random_state is not None)
        return Release(self.target.restore(value), guarantee, self.sensitivity)

    def _check(self, *parts: Any) -> Dataset:
        """Return the private dataset as the target is to see it, or refuse it."""
        dataset = as_dataset(parts, "The private dataset")
        if self.oracle is not None:
            check_is_public(self.oracle, dataset)
        if self.prepare is not None:
            dataset = self.prepare(*dataset)
        lengths = list(map(n_records, dataset.parts))
        if set(lengths) != {self.n_samples}:
            raise ValueError(
                f"The private dataset must have {self.n_samples} records in each of its parts, as "
                f"the plan has. Got parts of {lengths}. Make a plan for this number."
            )
        dataset = canonical(dataset)
        given = Schema.of(dataset).agree(self.schema)
        if given != self.schema:
            raise ValueError(
                "The private dataset is of another form than the plan: "
                f"{describe_key(given.key)}. The plan is for {describe_key(self.schema.key)}. Make "
                "a plan for data of this form, with 'like'."
            )
        if self.classes is not None:
            check_labels(dataset.y, self.classes)
        return self.schema.convert(dataset, "The private dataset")

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """What a release would promise."""
        known = self.sensitivity
        return replace(
            self.mechanism.guarantee(known.gamma),
            confidence=known.confidence,
            n_samples=self.n_samples,
            oracle=known.oracle,
            assumed=known.assumed,
        )

    @property
    def n_evaluations(self) -> int:
        """How often the target was evaluated on public records."""
        n_pilots = getattr(self.sensitivity.basis, "n_pilot_pairs", 0)
        return 2 * (len(getattr(self.sensitivity, "norms", ())) + n_pilots)

    @property
    def standard_errors(self) -> Any:
        """Standard deviations of the noise, in the units of what would be released."""
        shape = self.sensitivity.shape
        if shape is None:
            return None
        deviations = self.mechanism.standard_errors(shape, self.sensitivity.value)
        return None if deviations is None else self.target.by_name(deviations)

    def __str__(self) -> str:
        lines = [
            f"promise: {self.guarantee}",
            f"data: {self.n_samples} records, {describe_key(self.schema.key)}",
            f"evaluations: {self.n_evaluations} on public records ({self.seconds:.2g} s), then 1 "
            "on the data",
            *_describe_errors(self.standard_errors),
        ]
        return "\n  ".join([f"ReleasePlan of {self.target.description}", *lines])


def _spare(thing: Any) -> Any:
    """Copy what is to see private data: whatever it keeps of them, the original does not."""
    try:
        return copy.deepcopy(thing)
    except Exception:  # it holds a lock, a file or the like
        return thing


def _describe_errors(errors: Any) -> list[str]:
    """Say how large the noise is, in a line for each attribute."""
    if errors is None:
        return []
    named = errors if isinstance(errors, dict) else {"": errors}
    lines = []
    for name, values in named.items():
        parts = values if isinstance(values, list) else [values]
        numbers = np.concatenate([np.ravel(part) for part in parts])
        low, high = (f"{bound:.2g}" for bound in (numbers.min(), numbers.max()))
        of = f" in {name}" if name else ""
        lines.append(
            f"standard error of the noise{of}: {low}{'' if low == high else f' to {high}'}"
        )
    return lines


def example_dataset(n_samples: int, like: Any, sensitivity: Any, owner: str) -> Dataset:
    """Return as many records of the form of the data as there will be.

    Parameters
    ----------
    n_samples : int
        Their number.
    like : X, (X, y), (X, y, sample_weight) or None
        Records of that form; None takes the oracle's.
    sensitivity : object
        As given by the user.
    owner : str
        Whose parameters these are, for the error.

    Returns
    -------
    Dataset
        Of which only the form is to be used.
    """
    if like is None:
        if not isinstance(sensitivity, SensitivitySampler):
            raise ValueError(
                f"The 'like' parameter of {owner} must be given where no SensitivitySampler has an "
                "oracle to take the form of the data from. Got None. Pass a few made-up records."
            )
        return sensitivity.public_dataset(n_samples)
    dataset = as_dataset(like, f"The 'like' parameter of {owner}")
    if set(map(n_records, dataset.parts)) == {n_samples}:
        return dataset
    return dataset.take(np.resize(np.arange(dataset.n_records), n_samples))


def settle(sensitivity: Any, example: Dataset, allow_nan: bool) -> tuple[Any, Schema, Dataset]:
    """Draw the seed of a sampler, and settle the form in which data and draws are alike.

    Parameters
    ----------
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        As given by the user.
    example : Dataset
        Records of the form of the data, as many as there will be. No entry is looked at.
    allow_nan : bool
        Whether entries of X may be missing.

    Returns
    -------
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        The same; a sampler with its seed drawn, since all that is public follows from it.
    schema : Schema
        The form in which the target is evaluated.
    example : Dataset
        The records in this form.
    """
    example = canonical(example)
    schema = Schema.of(example, allow_nan)
    if isinstance(sensitivity, SensitivitySampler):
        sensitivity = sensitivity.with_fixed_seed()
        schema = sensitivity.agree(schema, example.n_records)
    elif isinstance(sensitivity, SensitivityEstimate):
        schema = schema.agree_with_key(sensitivity.form)
    elif isinstance(sensitivity, KnownSensitivity):
        sensitivity.check_records(*example.parts)
    return sensitivity, schema, schema.convert(example, "The private dataset")


def make_plan(
    target: Target,
    schema: Schema,
    n_samples: int,
    *,
    mechanism: Mechanism,
    sensitivity: Any,
    **others: Any,
) -> ReleasePlan:
    """Sample where it is to be sampled, and fix the promise.

    Parameters
    ----------
    target : Target
        What would be evaluated.
    schema : Schema
        From :func:`settle`.
    n_samples : int
        Number of records of the data.
    mechanism : Mechanism
        As given by the user.
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        From :func:`settle`.
    **others : dict
        More fields of the plan.

    Returns
    -------
    ReleasePlan
        It keeps a copy of the mechanism.
    """
    start = perf_counter()
    mechanism = clone(mechanism)
    if mechanism.chooses and replaces(target, "restore") and not isinstance(target, ChoiceTarget):
        raise ValueError(
            f"{type(mechanism).__name__} chooses one of several responses, and here numbers are "
            f"to be released: {target.description}. Use a mechanism that adds noise, such as "
            "LaplaceMechanism."
        )
    _warn_if_weak(mechanism.guarantee(), sensitivity, n_samples)
    sampled = isinstance(sensitivity, SensitivitySampler)
    mechanism, known = _settle_sensitivity(sensitivity, target, schema, n_samples, mechanism)
    mechanism.rehearse(known.shape, known.value)
    return ReleasePlan(
        target,
        schema,
        n_samples,
        mechanism,
        known,
        oracle=as_oracle(sensitivity.oracle) if sampled else None,
        seconds=perf_counter() - start if sampled else 0.0,
        **others,
    )


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
            warnings.warn(f"The promise is weak: {message}.", UserWarning, stacklevel=5)


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
    if replaces(target, "output_metric"):
        public = sampler.public_dataset(N_METRIC_RECORDS, schema, attempt=METRIC_DRAW)
        metric = target.output_metric(*public.parts)
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
