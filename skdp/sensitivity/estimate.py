"""A sampled sensitivity, as a frozen value that can be judged, stored and repeated."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import shown
from skdp.core.dataset import Dataset
from skdp.core.geometry import Geometry, MechanismType
from skdp.core.guarantee import STRATA
from skdp.core.identity import REMEDY, key_of, obstacle_of
from skdp.core.oracle import Oracle
from skdp.core.schema import DatasetForm, FormKey, describe_key
from skdp.core.target import Target
from skdp.oracles.adapters import OracleAdapter
from skdp.sensitivity.base import Settled, in_code_of, refuse_zero
from skdp.sensitivity.calibration import OrderStatistic
from skdp.sensitivity.likeness import AlikeTarget, PartRanges


@dataclass(frozen=True, eq=False)
class SensitivityEstimate(Settled):
    """A sampled sensitivity, with everything needed to judge and to repeat it.

    All of it is public: it is computed from the oracle's records alone.

    Parameters
    ----------
    norms : array-like of shape (n_pairs,) or (n_strata, n_pairs)
        The sampled sensitivities in the order of the pairs; ``inf`` where the target failed.
    order_statistic : OrderStatistic
        Which of the norms is the estimate, and what it promises.
    n_samples : int
        Number of records of each dataset of a pair.
    geometry : Geometry
        The norm, and the code if there is one, in which differences were measured.
    target : str
        Description of the target.
    shape : tuple of int or None
        Shape of the target's values; None when no pair could be evaluated.
    oracle : str
        Description of the source of records.
    seed : int
        Entropy of the sampling: the same seed gives the same norms.
    failures : dict of str to int, default={}
        How many pairs failed, by cause.
    form : tuple, default=()
        Container, columns and dtypes of the records, in words. An estimate serves this form only:
        in another one the same numbers may be rounded or overflow.
    n_rounding : int, default=0
        Number of pairs on which rounding explains the whole change of the target, in the stratum
        that has fewest. With `k` such pairs or more nothing is released.
    key : str, default=""
        Identity of the target, the only one that the estimate serves; without a key it serves none.
    prior : SensitivitySampler or None, default=None
        What draws the public records of a further release. It is not stored, pickled or compared.
    n_reused : int, default=0
        Number of evaluations that were known from before, also of pilots. It is not stored.
    strata : {"classes", "labels", "thirds"} or None, default=None
        What makes a stratum of pairs; see :class:`skdp.SensitivitySampler`.
    least_share : float or None, default=None
        Smallest share of a class that the oracle draws, if it says so.
    ranges : tuple, default=()
        By part of a dataset the lowest and the highest number of each column of the oracle's
        records, to which records are clipped; None for a column that stays as it is. An estimate
        without ranges is of records as they are, and is used so.
    oracle_key : str, default=""
        Digest of the oracle's content. An estimate with ranges serves no other oracle. Where it is
        empty, as of a function without a ``__skdp_key__``, only the descriptions are compared.

    Attributes
    ----------
    value : float
        The estimate: the ``order_statistic.k``-th smallest norm, the largest of those of strata.

    Examples
    --------
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> import numpy as np
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), random_state=0)
    >>> estimate = sampler.sample(np.mean, n_samples=100, geometry="l1")
    >>> len(estimate.norms), estimate.value < 1 / 100
    (199, True)
    """

    norms: NDArray[np.float64]
    order_statistic: OrderStatistic
    n_samples: int
    geometry: Geometry
    target: str
    shape: tuple[int, ...] | None
    oracle: str
    seed: int
    failures: dict[str, int] = field(default_factory=dict)
    form: tuple[FormKey, ...] = ()
    n_rounding: int = 0
    key: str = ""
    prior: Any = field(default=None, compare=False)
    n_reused: int = field(default=0, compare=False)
    strata: str | None = None
    least_share: float | None = None
    ranges: PartRanges = ()
    oracle_key: str = ""
    value: float = field(init=False)

    def __post_init__(self) -> None:
        norms = np.array(self.norms, dtype=np.float64)
        if self.strata is not None and self.strata not in STRATA:
            raise ValueError(
                "The 'strata' parameter of SensitivityEstimate must be None or one of "
                f"{[*STRATA]}. Got {shown(self.strata)}."
            )
        each = (self.order_statistic.n_strata,) if self.strata else ()
        if norms.shape != (*each, self.order_statistic.n_pairs):
            raise ValueError(
                "The 'norms' parameter of SensitivityEstimate must hold one value for each of the "
                f"{self.order_statistic.n_pairs} pairs of a stratum. Got shape {norms.shape}."
            )
        norms.flags.writeable = False
        object.__setattr__(self, "form", _as_tuples(self.form))
        object.__setattr__(self, "ranges", _as_tuples(self.ranges))
        object.__setattr__(self, "norms", norms)
        object.__setattr__(self, "value", self._at_rank(self.order_statistic.k))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"prior": None}  # no record of an oracle goes out

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return math.prod(self.shape or ())

    def _at_rank(self, rank: int) -> float:
        """Return the norm at a rank, of the stratum where it is largest."""
        return float(np.sort(self.norms)[..., rank - 1].max())

    @property
    def gamma(self) -> float:
        """Probability that a pair drawn from the oracle exceeds the value."""
        return self.order_statistic.gamma

    @property
    def confidence(self) -> float | None:
        """Confidence of a two-level statement, None for a joint one."""
        return self.order_statistic.confidence

    @property
    def identity(self) -> str:
        """Digest that is equal for estimates which cover the same pairs."""
        public = (self.key, self.geometry.key, self.n_samples, self.form, self.order_statistic)
        content = repr((*public, self.strata, self.ranges)).encode() + self.norms.tobytes()
        return hashlib.sha256(content).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SensitivityEstimate):
            return NotImplemented
        names = [each.name for each in fields(self) if each.compare and each.name != "norms"]
        alike = all(getattr(self, name) == getattr(other, name) for name in names)
        return alike and np.array_equal(self.norms, other.norms)

    def __repr__(self) -> str:
        return (
            f"SensitivityEstimate(value={self.value:.6g}, {self.geometry.key}, "
            f"k={self.order_statistic.k} of {self.order_statistic.n_pairs} pairs"
            f"{f' in each stratum of {self.strata}' if self.strata else ''}, "
            f"gamma={self.gamma:g}, {self.order_statistic.calibration!r}, "
            f"n_samples={self.n_samples}, oracle={self.oracle}, "
            f"failures={sum(self.failures.values())})"
        )

    @property
    def n_measured(self) -> int:
        return self.order_statistic.n_pairs

    @property
    def sampled_with(self) -> int:
        return self.seed

    def agree(self, schema: DatasetForm, example: Dataset) -> tuple[Self, DatasetForm]:
        prior = self.prior
        if prior is not None:
            prior, schema = prior.agree(schema, example)
        return self.with_prior(prior), schema.agree(self.form)

    def settle(
        self, target: Target, n_samples: int, schema: DatasetForm, mechanism: MechanismType
    ) -> tuple[SensitivityEstimate, MechanismType]:
        mechanism = in_code_of(self.geometry, mechanism)
        self.check_fits(n_samples, schema, mechanism.geometry)
        self.check_made_for(target)
        self.check_usable()
        self.check_draws(self.draws_from)
        return self, mechanism

    @property
    def clipped(self) -> bool:  # type: ignore[override]  # always known here
        return bool(self.ranges)

    def bounded(
        self, target: Target, oracle: Oracle | None = None, schema: DatasetForm | None = None
    ) -> Target:
        if not self.ranges:
            return target
        assert oracle is not None  # as `settle` makes sure
        assert schema is not None
        return AlikeTarget(target, self.ranges, oracle, schema)

    def check_draws(self, oracle: Oracle | None) -> None:
        """Refuse an oracle for the records far outside, unless it is the one that was sampled."""
        if not self.ranges:
            return
        drawn = None if oracle is None else oracle.description
        fits = drawn == self.oracle
        if fits and self.oracle_key and key_of_oracle(oracle) != self.oracle_key:
            fits, drawn = False, f"{drawn}, which holds something else"
        if not fits:
            raise ValueError(
                "The 'sensitivity' was sampled with clip='ranges', where records far outside count "
                f"as draws of the oracle {self.oracle}, so it needs this oracle. Got {drawn}. Pass "
                "it as the 'prior' of PrivateEstimator, or to release a function "
                "estimate.with_prior(SensitivitySampler(oracle))."
            )

    def check_fits(self, n_samples: int, schema: DatasetForm, geometry: Geometry) -> None:
        ours, theirs = (describe_key(form) or "unknown" for form in (self.form, schema.key))
        rules = {
            "number of records": (self.n_samples == n_samples, self.n_samples, n_samples),
            "norm": (self.geometry.bounds(geometry), self.geometry.key, geometry.key),
            "form of records": (self.form == schema.key, ours, theirs),
        }
        for what, (fits, made_for, needed) in rules.items():
            if not fits:
                raise _another(what, made_for, needed)

    def check_made_for(self, target: Target) -> None:
        key = key_of(target)
        obstacle = obstacle_of(key) or obstacle_of(self.key)
        if obstacle:
            raise ValueError(
                f"The 'sensitivity' may have been made for another target than "
                f"{target.description}, since {obstacle}. {REMEDY}"
            )
        if self.key != key:
            how = "" if self.target != target.description else ", of other labels or other values"
            raise _another("target", self.target, f"{target.description}{how}")

    def check_usable(self) -> None:
        """Refuse a value that is zero, one of rounding errors or infinite."""
        refuse_zero(self.value)
        n_pairs, k = self.order_statistic.n_pairs, self.order_statistic.k
        if self.n_rounding >= k:
            raise ValueError(
                f"The sampled sensitivity, {self.value:.3g}, is one of rounding errors: on "
                f"{self.n_rounding} of {n_pairs} pairs the target changed by rounding alone, or in "
                "nothing but a mean response. Use an oracle with more varied records, a smaller "
                "gamma, or a target without large constants."
            )
        if math.isinf(self.value):
            causes = "; ".join(f"{count} with {cause!r}" for cause, count in self.failures.items())
            n_failed, n_drawn = sum(self.failures.values()), self.norms.size
            larger = ", allow a larger gamma" if n_failed < n_drawn else ""
            raise ValueError(
                f"The sampled sensitivity is infinite: of {n_drawn} pairs of datasets of "
                f"{self.n_samples} records {n_failed} failed ({causes}), and the promise allows "
                f"{n_pairs - k} of {n_pairs}. Change the oracle or the target{larger}, or take "
                "more records."
            )

    def to_dict(self) -> dict:
        """Return the estimate as plain values, ready for JSON: None for infinite norms."""
        norms = self.norms.astype(object)
        norms[np.isinf(self.norms)] = None
        stored = [each.name for each in fields(self) if each.init and each.compare]
        return {name: getattr(self, name) for name in stored} | {
            "norms": norms.tolist(),
            "order_statistic": asdict(self.order_statistic),
            "geometry": self.geometry.to_dict(),
            "shape": None if self.shape is None else list(self.shape),
            "failures": dict(self.failures),
        }

    @classmethod
    def from_dict(cls, values: dict) -> SensitivityEstimate:
        """Make an equal estimate from the values of :meth:`to_dict`."""
        norms = np.array(values["norms"], dtype=np.float64)  # None becomes nan
        made = {
            "norms": np.where(np.isnan(norms), math.inf, norms),
            "order_statistic": OrderStatistic(**values["order_statistic"]),
            "geometry": Geometry.from_dict(values["geometry"]),
            "shape": None if values["shape"] is None else tuple(values["shape"]),
        }
        return cls(**values | made)

    def save(self, path: str | Path) -> None:
        """Write the estimate to a JSON file; an existing one is replaced once this is complete."""
        text, path = json.dumps(self.to_dict(), allow_nan=False), Path(path).resolve()
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> SensitivityEstimate:
        """Read an equal estimate from a file of :meth:`save`; nothing in it is executed."""
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))


def key_of_oracle(oracle: object) -> str:
    """Return a digest of what an oracle is made of; empty where it has no identity."""
    while isinstance(oracle, OracleAdapter):
        oracle = oracle.source
    key = key_of(oracle)
    return "" if obstacle_of(key) else key


def _another(what: str, made_for: object, needed: object) -> ValueError:
    """Make the error of an estimate that serves another release."""
    return ValueError(
        f"The 'sensitivity' was made for another {what}: {made_for}. This release has {needed}. "
        "Sample the sensitivity of this release."
    )


def _as_tuples(nested: object) -> object:
    """Turn the lists of JSON into tuples again."""
    return tuple(map(_as_tuples, nested)) if isinstance(nested, list | tuple) else nested
