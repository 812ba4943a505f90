"""A sampled sensitivity, as a frozen value that can be judged, stored and repeated."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.basis import PublicBasis
from skdp.core.schema import Key
from skdp.core.target import Target
from skdp.sensitivity.calibration import OrderStatistic, order_statistic


@dataclass(frozen=True, eq=False)
class SensitivityEstimate:
    """A sampled sensitivity, with everything needed to judge and to repeat it.

    Public throughout: it is computed from the oracle's records alone.

    Parameters
    ----------
    norms : array-like of shape (n_pairs,)
        The sampled sensitivities in the order of the pairs. A pair on which the target could not
        be evaluated counts as ``inf``.
    order_statistic : OrderStatistic
        Which of them is the estimate, and what that promises.
    n_samples : int
        Number of records of each dataset of a pair.
    norm_name : str
        The norm of the differences, such as "l1".
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
        Container, columns and dtypes of the records, in words. An estimate serves datasets of this
        form only: in another one the same numbers may be rounded or wrap around.
    basis : PublicBasis or None, default=None
        The coordinates in which the differences were measured, with the number of pilot pairs
        that it was learned from; None when in those of the value itself.
    n_rounding : int, default=0
        On how many pairs the target did not change by more than the rounding of its values. With
        `k` of them or more the estimate is one of rounding errors, and nothing is released.
    key : str, default=""
        What the target is known by; see the user guide. An estimate serves the target that it was
        made for and no other; without a key it serves none.

    Attributes
    ----------
    value : float
        The estimate: the ``order_statistic.k``-th smallest norm.

    Raises
    ------
    ValueError
        If the number of norms is not that of the order statistic.

    Examples
    --------
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> from skdp.mechanisms.base import l1_norm
    >>> import numpy as np
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), random_state=0)
    >>> estimate = sampler.sample(np.mean, n_samples=100, norm=l1_norm)
    >>> len(estimate.norms), estimate.value < 1 / 100
    (199, True)
    """

    norms: NDArray[np.float64]
    order_statistic: OrderStatistic
    n_samples: int
    norm_name: str
    target: str
    shape: tuple[int, ...] | None
    oracle: str
    seed: int
    failures: dict[str, int] = field(default_factory=dict)
    form: tuple[Key, ...] = ()
    basis: PublicBasis | None = None
    n_rounding: int = 0
    key: str = ""
    value: float = field(init=False)

    def __post_init__(self) -> None:
        norms = np.array(self.norms, dtype=np.float64)
        if norms.shape != (self.order_statistic.n_pairs,):
            raise ValueError(
                "The 'norms' parameter of SensitivityEstimate must hold one value for each of the "
                f"{self.order_statistic.n_pairs} pairs. Got shape {norms.shape}."
            )
        object.__setattr__(self, "form", _as_tuples(self.form))
        norms.flags.writeable = False
        k = self.order_statistic.k
        object.__setattr__(self, "norms", norms)
        object.__setattr__(self, "value", float(np.partition(norms, k - 1)[k - 1]))

    @property
    def gamma(self) -> float:
        """Probability that a pair drawn from the oracle exceeds the value."""
        return self.order_statistic.gamma

    @property
    def confidence(self) -> float | None:
        """Confidence of a two-level statement, None for a joint one."""
        return self.order_statistic.confidence

    @property
    def is_rounding(self) -> bool:
        """Whether the value would be 0 if pairs that differ by rounding did not differ."""
        return self.n_rounding >= self.order_statistic.k

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SensitivityEstimate):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return (
            f"SensitivityEstimate(value={self.value:.6g}, {self.norm_name}, "
            f"k={self.order_statistic.k} of {self.order_statistic.n_pairs} pairs, "
            f"gamma={self.gamma:g}, {self.order_statistic.calibration!r}, "
            f"n_samples={self.n_samples}, oracle={self.oracle}, "
            f"failures={sum(self.failures.values())})"
        )

    @property
    def assumed(self) -> None:
        """Nothing that a guarantee has to say: the oracle is named there."""

    def bounded(self, target: Target) -> Target:
        """Return the function that was sampled, which is the one to be released.

        Parameters
        ----------
        target : Target
            What is to be released.

        Returns
        -------
        Target
            `target` itself.
        """
        return target

    def at(self, gamma: float) -> SensitivityEstimate:
        """Read the same draws at another level.

        Only the "dkw" calibration is a simultaneous bound; under the others gamma must be fixed
        before the draws are seen.

        Parameters
        ----------
        gamma : float in (0, 1)
            The new level.

        Returns
        -------
        SensitivityEstimate
            The same norms with another order statistic.

        Raises
        ------
        ValueError
            Under another calibration, or if `gamma` is not attainable with these pairs.
        """
        used = self.order_statistic
        if used.calibration != "dkw":
            raise ValueError(
                "SensitivityEstimate.at needs calibration='dkw', whose bound holds for every gamma "
                f"at once. Got calibration={used.calibration!r}, which promises only the gamma "
                f"that was fixed before the draws, {used.gamma:g}. Sample anew at the gamma wanted."
            )
        return replace(
            self, order_statistic=order_statistic(gamma, used.n_pairs, calibration="dkw")
        )

    def to_dict(self) -> dict:
        """Return the estimate as plain values, ready for JSON.

        Returns
        -------
        dict
            One entry per parameter. Infinite norms, which JSON has no word for, are None.
        """
        values = asdict(replace(self, basis=None))
        del values["value"]
        values["basis"] = None if self.basis is None else self.basis.to_dict()
        values["norms"] = [norm if math.isfinite(norm) else None for norm in self.norms.tolist()]
        values["shape"] = None if self.shape is None else list(self.shape)
        return values

    @classmethod
    def from_dict(cls, values: dict) -> SensitivityEstimate:
        """Make an estimate from the values of :meth:`to_dict`.

        Parameters
        ----------
        values : dict
            As returned by :meth:`to_dict`.

        Returns
        -------
        SensitivityEstimate
            Equal to the one that was stored.

        Raises
        ------
        ValueError
            If it has no key, as estimates of earlier versions.
        """
        if not values.get("key"):
            raise ValueError(
                "This SensitivityEstimate does not say by a 'key' which target it was made for, as "
                "it was stored by an earlier version of skdp. Sample the sensitivity anew."
            )
        norms = [math.inf if norm is None else norm for norm in values["norms"]]
        shape = None if values["shape"] is None else tuple(values["shape"])
        statistic = OrderStatistic(**values["order_statistic"])
        basis = None if values["basis"] is None else PublicBasis.from_dict(values["basis"])
        made = {"norms": norms, "shape": shape, "order_statistic": statistic, "basis": basis}
        return cls(**values | made)

    def save(self, path: str | Path) -> None:
        """Write the estimate to a JSON file.

        Parameters
        ----------
        path : str or pathlib.Path
            Where to write. An existing file is replaced.
        """
        Path(path).write_text(json.dumps(self.to_dict(), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> SensitivityEstimate:
        """Read an estimate from a JSON file written by :meth:`save`.

        Parameters
        ----------
        path : str or pathlib.Path
            The file to read. Nothing in it is executed.

        Returns
        -------
        SensitivityEstimate
            Equal to the one that was saved, bit for bit.
        """
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))


def _as_tuples(nested: Any) -> Any:
    """Turn the lists of JSON into tuples again."""
    return tuple(map(_as_tuples, nested)) if isinstance(nested, list | tuple) else nested
