"""A sensitivity known on paper, to be used instead of a sampled one.

The assumptions of a bound are checked where no record has to be read, or made true by clipping
records. All others are in its `preconditions`, which the guarantee repeats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from skdp.core.checks import check_count, check_real, is_real, shown
from skdp.core.dataset import Dataset
from skdp.core.dtypes import holds_numbers, is_object
from skdp.core.geometry import Geometry, Measures, MechanismType, as_geometry
from skdp.core.guarantee import ASSERTED
from skdp.core.identity import key_of
from skdp.core.schema import DatasetForm, describe_columns
from skdp.core.target import Target
from skdp.core.types import Estimator, Seed
from skdp.oracles.adapters import as_oracle
from skdp.sensitivity.base import Sensitivity, Settled, in_code_of, refuse_zero
from skdp.sensitivity.preconditions import (
    ClippedTarget,
    EstimatorRule,
    Ranges,
    as_ranges,
    check_clippable,
)
from skdp.sensitivity.sampler import SensitivitySampler


@dataclass(frozen=True)
class KnownSensitivity(Settled):
    """A bound on how much one record can change a target, and all that is needed to use it.

    Parameters
    ----------
    value : float in [0, inf)
        The bound on the distance of f(D) and f(D').
    geometry : {"l1", "l2", "sup"} or Geometry
        The norm of the values as they are, or of a public code of them. A bound of a larger norm
        also bounds the smaller ones with the same code.
    n_samples : int
        Number of records of both datasets.
    gamma : float in [0, 1), default=0.0
        Probability that the bound fails on a pair drawn from the distribution named in
        `preconditions`; 0 when it holds for all records.
    preconditions : str, default=""
        Assumptions about the records and the target, which are not checked. The guarantee repeats
        them.
    source : str, default=""
        Where the proof is. Without one the guarantee says that the caller asserts the bound.
    ranges : array-like of shape (n_features, 2) or None, default=None
        Lowest and highest value of each column that the bound supposes. Records are clipped to
        them before they are evaluated; missing numbers become 0 first. None leaves records as they
        are.
    estimator : EstimatorRule or None, default=None
        The estimators that the bound is for, which PrivateEstimator checks. For any other target
        the guarantee says that it is assumed to be one.
    shape : tuple of int or None, default=None
        Shape of the value, from which a plan computes the standard errors.
    prior : oracle, SensitivitySampler or None, default=None
        Source of plausible records, not derived from the private data, from which a mechanism with
        ``code="auto"`` learns a public code. It does not affect the guarantee. A sampler also sets
        the seed and number of the pilot pairs, otherwise 199. For a bound without a gamma.
    l2_value : float or None, default=None
        A smaller bound in the L2 norm, for a bound in the L1 norm.
    key : str, default=""
        Identity of the only target that the bound is for. Empty for any.
    missing : str, default=""
        What becomes of missing numbers, such as "missing numbers count as 0". With `ranges` it
        is known.

    Raises
    ------
    ValueError
        If a number is out of range or the norm is unknown.

    Examples
    --------
    >>> from skdp.bounds import mean_bound
    >>> bound = mean_bound(n_samples=200, n_features=3, ranges=(0, 1))
    >>> round(bound.for_geometry("l2", n_samples=200), 6)
    0.00866
    >>> print(bound.assumed)
    sensitivity 0.015 known on paper, assuming that the target is the mean of each column;
    records are clipped to [0, 1]; missing numbers count as 0

    That the target is a mean is assumed. A number asserts everything:

    >>> from skdp import KnownSensitivity
    >>> print(KnownSensitivity(1e-9, "l1", n_samples=200).assumed)
    sensitivity 1e-09 asserted by the caller
    """

    value: float
    geometry: Any
    n_samples: int
    gamma: float = 0.0
    preconditions: str = ""
    source: str = ""
    ranges: Ranges | None = None
    estimator: EstimatorRule | None = None
    shape: tuple[int, ...] | None = None
    prior: Any = None
    l2_value: float | None = field(default=None, repr=False)
    key: str = field(default="", repr=False)
    missing: str = field(default="", repr=False)

    confidence: ClassVar[None] = None

    @property
    def oracle(self) -> str | None:
        """The distribution that the statement is about; None when it is about all records."""
        return (self.preconditions or None) if self.gamma else None

    @property
    def identity(self) -> None:
        """None: two bounds cannot share one gamma."""

    @property
    def gaps(self) -> str:
        """How missing numbers count; empty where the target sees them."""
        if self.ranges is None:
            return self.missing
        if len(set(self.ranges)) > 1:
            return "missing numbers count as 0, clipped"
        low, high = self.ranges[0]
        return f"missing numbers count as {min(max(0, low), high):g}"

    @property
    def assumed(self) -> str:
        """The assumptions, in the words of the guarantee."""
        known = "known on paper" if self.source else ASSERTED
        suppositions = [f"that the target is {self.estimator}"] if self.estimator else []
        if self.preconditions and not self.gamma:  # with a gamma they are the oracle
            suppositions.append(self.preconditions)
        supposed = f", assuming {' and '.join(suppositions)}" if suppositions else ""
        box = ""
        if self.ranges is not None:
            low, high = self.ranges[0]
            is_one = len(set(self.ranges)) == 1
            box = f"records are clipped to {f'[{low:g}, {high:g}]' if is_one else 'their ranges'}"
        parts = f"sensitivity {self.value:.6g} {known}{supposed}", box, self.gaps
        return "; ".join(filter(None, parts))

    def __post_init__(self) -> None:
        check_count("n_samples", self.n_samples, "KnownSensitivity")
        geometry = as_geometry(self.geometry, "KnownSensitivity")
        object.__setattr__(self, "geometry", geometry)
        if self.ranges is not None:
            object.__setattr__(self, "ranges", as_ranges(self.ranges, "KnownSensitivity"))
        for name, high in (("value", math.inf), ("gamma", 1.0)):
            # a float, since JSON has no numbers of numpy
            number = check_real(name, getattr(self, name), "KnownSensitivity", 0.0, high, "l")
            object.__setattr__(self, name, number)
        if self.l2_value is not None:
            check_real("l2_value", self.l2_value, "KnownSensitivity", 0.0, closed="l")
            if geometry.order != 1 or self.l2_value > self.value:
                raise ValueError(
                    "The 'l2_value' parameter of KnownSensitivity must be at most a bound in the "
                    f"L1 norm. Got {self.l2_value!r}, and {self.value!r} in {geometry.key!r}."
                )
        if self.prior is not None:
            object.__setattr__(self, "prior", as_prior(self.prior))
            if self.gamma:
                raise ValueError(
                    "The 'prior' parameter of KnownSensitivity is for a bound without a gamma. "
                    f"Got gamma={self.gamma!r}."
                )

    def in_norm(self, order: float) -> KnownSensitivity:
        if self.l2_value is None:
            return self
        if order != 2:
            return replace(self, l2_value=None)
        geometry = Geometry(2, self.geometry.code)
        return replace(self, value=self.l2_value, geometry=geometry, l2_value=None)

    def for_geometry(self, geometry: Geometry | str, n_samples: int) -> float:
        """Return the value of the bound for a geometry and a number of records.

        Parameters
        ----------
        geometry : Geometry or {"l1", "l2", "sup"}
            The geometry of the mechanism.
        n_samples : int
            Number of records of the private dataset.

        Returns
        -------
        float
            The bound.

        Raises
        ------
        ValueError
            If the bound is for a smaller norm, another code or another number of records.
        """
        geometry = as_geometry(geometry, "KnownSensitivity")
        if not self.geometry.bounds(geometry):
            raise ValueError(
                f"A known sensitivity in the norm {self.geometry.key!r} bounds neither larger "
                f"norms nor those of another code. The mechanism needs {geometry.key!r}."
            )
        if n_samples != self.n_samples:
            raise ValueError(
                f"The known sensitivity holds for n_samples={self.n_samples}. Got {n_samples}."
            )
        return self.in_norm(geometry.order).value

    def for_estimator(
        self, estimator: Estimator, release: object, dataset: Dataset, uses_response: bool
    ) -> KnownSensitivity:
        dataset.refuse_weights()
        known = super().for_estimator(estimator, release, dataset, uses_response)
        if self.estimator is None:
            return known
        self.estimator.check(estimator)
        self.estimator.check_release(release)
        return replace(known, estimator=None)  # it was checked, so it is not assumed

    def agree(self, schema: DatasetForm, example: Dataset) -> tuple[KnownSensitivity, DatasetForm]:
        if self.ranges is not None:
            example.refuse_weights()
            check_clippable(example.X, schema.parts.X.dtypes, self.ranges)
        if self.prior is None:
            return self, schema
        prior, drawn = self.prior.agree(schema, example)
        pairs = zip(schema.parts.X.dtypes, drawn.parts.X.dtypes, strict=True)
        if any(is_object(ours) and holds_numbers(theirs) for ours, theirs in pairs):
            raise ValueError(
                "X holds objects where the prior draws numbers, and words would count as 0."
                f"{describe_columns(schema.key[:1], drawn.key[:1])} Convert it by X.astype(float)."
            )
        # the data keep their form, since the bound is for any record of it
        prior.public_dataset(example.n_records, schema)
        return self.with_prior(prior), schema

    def settle(
        self, target: Target, n_samples: int, schema: DatasetForm, mechanism: MechanismType
    ) -> tuple[KnownSensitivity, MechanismType]:
        self.check_made_for(target)
        mechanism = in_code_of(self.geometry, mechanism)
        refuse_zero(self.for_geometry(mechanism.geometry, n_samples))
        # a release holds no record of an oracle
        return self.with_prior(None), mechanism

    def check_fits(self, n_samples: int, schema: DatasetForm, geometry: Geometry) -> None:
        self.for_geometry(geometry, n_samples)

    def check_made_for(self, target: Target) -> None:
        if self.key and self.key != key_of(target):
            raise ValueError(
                f"The known sensitivity was derived for another target than {target.description}. "
                "Pass the bound from which it was made, 'known' or 'aggregate'."
            )

    def bounded(self, target: Target, *drawn: Any) -> Target:
        return target if self.ranges is None else ClippedTarget(target, self.ranges)


def as_prior(oracle: object, random_state: Seed = None) -> SensitivitySampler:
    """Return a sampler as it is, and make one of an oracle that yields pilots for a code."""
    if isinstance(oracle, SensitivitySampler):
        return oracle
    source = as_oracle(oracle)
    return SensitivitySampler(source, gamma=None, n_pairs=199, clip=None, random_state=random_state)


def as_sensitivity(sensitivity: object, mechanism: Measures, n_samples: int) -> Sensitivity:
    """Return a sensitivity as it is, and a number as a bound in the geometry of the mechanism."""
    if isinstance(sensitivity, Sensitivity):
        return sensitivity
    if is_real(sensitivity):
        return KnownSensitivity(float(sensitivity), mechanism.geometry, n_samples)
    hint = " Pass an oracle as SensitivitySampler(oracle)." if callable(sensitivity) else ""
    raise TypeError(
        "The 'sensitivity' parameter must be a SensitivitySampler, a SensitivityEstimate, a "
        "KnownSensitivity, a SampleAndAggregate, a number or 'aggregate'; of a PrivateEstimator "
        f"it may be 'known' or ClassTables. Got {shown(sensitivity)}.{hint}"
    )
