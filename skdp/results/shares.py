"""Counts of private records beside a release, each of which a share of its epsilon pays for.

Whether a record counts depends on it alone, on public ranges or on the model that was released. So
a replaced record moves a count by at most one, whatever the records are: noise of scale
1 / epsilon makes it private, without a gamma. The counts and the release add up by composition,
also where the count is of the released model, since that is a function of earlier output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from skdp.core.checks import is_real, shown
from skdp.core.dataset import Dataset, Elsewhere, take_records
from skdp.core.exact import below, finite
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.core.room import evaluate_privately, spare
from skdp.core.target import Target
from skdp.core.types import Container, Estimator
from skdp.exceptions import UnlikeRecordsError
from skdp.mechanisms.base import ByteSource, Mechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.results.expected import ScoreAt
from skdp.sensitivity.likeness import AlikeTarget

LEAST = {"check": 11, "score": 35}  # n epsilon: to find a wrong unit, and for an error of .04
MOST_UNLIKE, FALSE_ALARM = 0.1, 0.001  # share of records that are outside, and how often it fails
COUNTED = "a record moves a count by at most one"
OWNER = "The 'shares' parameter of PrivateEstimator"


@dataclass(frozen=True)
class Shares:
    """The epsilon of a release with its counts, and of each count; 0 for none."""

    total: float = 0.0
    check: float = 0.0
    score: float = 0.0

    def __str__(self) -> str:
        names = {"check": "the check of likeness", "score": "the score on private records"}
        parts = [f"{self._of(name):g} for {said}" for name, said in names.items() if self._of(name)]
        return f"of epsilon {', '.join(parts)}" if parts else ""

    def _of(self, name: str) -> float:
        return float(getattr(self, name))

    def whole(self, promise: PrivacyGuarantee) -> PrivacyGuarantee:
        """Return the promise of a release together with its counts."""
        return replace(promise, epsilon=self.total) if self.total else promise

    def spend(self, name: str, promise: PrivacyGuarantee, label: str) -> dict[str, Any]:
        """Return what a count spends, which has no delta and no gamma."""
        epsilon = self._of(name)
        unit: Any = {"n_samples": promise.n_samples, "unit": promise.unit, "seeded": promise.seeded}
        counted = PrivacyGuarantee(epsilon, alone=promise.alone, assumed=COUNTED, **unit)
        return {"guarantee": counted, "law": NoiseLaw("laplace", epsilon), "label": label}

    def check_fits(self, sensitivity: Any, example: Dataset, classes: Any, unit: str) -> None:
        """Refuse counts that are not defined, or too noisy to be of use, in public words."""
        n = example.n_records
        for name, least in LEAST.items():
            epsilon = self._of(name)
            if epsilon and n * epsilon < least:
                raise ValueError(
                    f"{OWNER} must give {name!r} an epsilon of at least {least} / n. Got "
                    f"{epsilon:g} for n={n}, which says too little: it takes "
                    f"{math.ceil(least / epsilon)} records, or a larger share."
                )
        has_ranges = getattr(sensitivity, "clip", None) or getattr(sensitivity, "ranges", None)
        if self.check and not has_ranges:
            raise ValueError(
                f"{OWNER} must hold no 'check' where there are no ranges of an oracle to check "
                "records by. Sample the sensitivity, with clip='ranges'."
            )
        is_here = not isinstance(example.X, Elsewhere) and np.ndim(example.y) == 1
        if self.score and not (is_here and unit == "record" and len(classes or [0]) == 1):
            raise ValueError(
                f"{OWNER} must hold no 'score' for persons, several outputs, or a table of an "
                f"engine: a record in memory is right or wrong. Got {unit}s in "
                f"{type(example.X).__name__}. Leave it out."
            )

    def check_alike(self, target: AlikeTarget, dataset: Dataset, source: ByteSource) -> None:
        """Refuse records many of which are outside the ranges of the oracle's."""

        def count(*parts: Container, seed: int) -> int:
            return int(target.are_outside(Dataset(*parts)).sum())

        n, margin = dataset.n_records, math.log(1 / (2 * FALSE_ALARM)) / self.check
        if not _noisy(count, dataset, self.check, source) <= MOST_UNLIKE * n + margin:
            raise UnlikeRecordsError(
                f"More than {MOST_UNLIKE:.0%} of the private records are outside the ranges of the "
                f"oracle's. Nothing else was released, and the epsilon of the check, {self.check:g}"
                ", is spent. Compare the units and codes of the columns, as by skdp.compare."
            )

    def score_of(self, model: Estimator, dataset: Dataset, source: ByteSource) -> ScoreAt:
        """Return the share of records that a released model predicts right, with its error."""
        model, n = spare(model), dataset.n_records

        def count(X: Container, y: NDArray, *_: Container, seed: int) -> int:
            return n_right(model, X, y)

        share = _noisy(count, dataset, self.score, source) / n
        return ScoreAt(float(np.clip(share, 0, 1)), math.sqrt(2) / (n * self.score))


NO_SHARES = Shares()


def _noisy(
    count: Callable[..., Any], dataset: Dataset, epsilon: float, source: ByteSource
) -> float:
    mechanism = LaplaceMechanism(epsilon, code=None)
    released = evaluate_privately(
        count, dataset, 0, (), lambda exact: mechanism.release(exact, 1.0, source)
    )
    return float(released)


def n_right(model: Estimator, X: Container, y: NDArray) -> int:
    """Count right predictions; a record at which the model fails counts as wrong."""
    if _is_known(model):
        try:
            return int(np.sum(np.asarray(model.predict(X)) == y))
        except Exception:  # at one record, which then counts as wrong
            pass
    return sum(_is_right(model, take_records(X, np.array([i])), y[i]) for i in range(len(y)))


def _is_known(value: Any) -> bool:
    """Return whether each prediction is of one record, as in scikit-learn without own functions."""
    match value:
        case dict():
            return all(map(_is_known, value.values()))
        case list() | tuple():
            return all(map(_is_known, value))
        case type():
            return issubclass(value, np.generic)
        case _ if hasattr(value, "get_params"):
            home = type(value).__module__.partition(".")[0]
            return home in ("sklearn", "skdp") and _is_known(value.get_params(deep=False))
    return not callable(value) or str(getattr(value, "__module__", "")).startswith("skdp.")


def _is_right(model: Estimator, record: Container, label: object) -> bool:
    try:
        return bool(model.predict(record)[0] == label)
    except Exception:
        return False


def split(given: Any) -> tuple[Mechanism, Shares]:
    """Split the epsilon of a mechanism into that of a release and those of its counts."""
    shares, mechanism = given.shares, given.mechanism
    if shares is None:
        return mechanism, NO_SHARES
    is_dict = isinstance(shares, Mapping) and bool(shares) and set(shares) <= set(LEAST)
    values = [*shares.values()] if is_dict else []
    if not (values and all(map(is_real, values)) and min(values) > 0 and sum(values) <= 0.5):
        raise ValueError(
            f"{OWNER} must be None, or say which shares of epsilon, at most .5 in all, pay for a "
            "'check' of the records, a 'score' on them, or both, such as {'score': 0.05}. Got "
            f"{shown(shares)}."
        )
    epsilon = mechanism.get_params().get("epsilon", math.nan)
    if not math.isfinite(epsilon):
        raise ValueError(
            f"{OWNER} must be None where the mechanism has no finite 'epsilon' to share. Got "
            f"{shown(mechanism)}. Take a LaplaceMechanism or a GaussianMechanism."
        )
    is_scored = is_classifier(given.estimator) and not isinstance(given.release, Target)
    if "score" in shares and not is_scored:
        raise ValueError(
            f"{OWNER} must hold a 'score' for classifiers only, and not with a target of your own: "
            f"no bound is known for other scores. Got {type(given.estimator).__name__}. Leave it "
            "out."
        )
    parts = {name: below(finite(share) * finite(epsilon)) for name, share in shares.items()}
    left = below(finite(epsilon) - sum(map(finite, parts.values())))
    return clone(mechanism).set_params(epsilon=left), Shares(epsilon, **parts)
