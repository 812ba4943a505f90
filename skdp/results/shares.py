"""Counts of private records beside a release, each of which a share of its epsilon pays for.

Whether a record counts depends on it alone, on public ranges or on the model that was released. So
a replaced record moves a count by at most one, whatever the records are, and noise of scale
1 / epsilon makes it private, without a gamma. The epsilons add up, also where the count is of the
released model, since that is a function of earlier output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from skdp.core.checks import check_real, is_real, shown
from skdp.core.dataset import Dataset
from skdp.core.exact import above, below, exact, finite
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.core.plain import as_objects
from skdp.core.room import evaluate_privately, spare
from skdp.core.types import ByteSource, Estimator
from skdp.exceptions import UnlikeRecordsError
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.results.expected import ScoreAt
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.likeness import AlikeTarget

LEAST = {"check": 11, "score": 35}  # n epsilon: to find a wrong unit, and for an error of .04
MOST_OUTSIDE, FALSE_ALARM = 0.1, 0.001  # share of records that pass, and how often they fail
# Modules of scikit-learn and a class; in others the records of a batch may act together.
ONE_BY_ONE = (
    "compose discriminant_analysis dummy ensemble feature_selection frozen linear_model multiclass "
    "naive_bayes neighbors neural_network pipeline preprocessing svm tree SimpleImputer"
)
FAILS = Exception, SystemExit  # in code of the user, at a record
COUNTED = "a record moves a count by at most one"
OWNER = "The 'shares' parameter of PrivateEstimator"


@dataclass(frozen=True)
class Shares:
    """The epsilon of each count beside a release; 0 for none."""

    check: float = 0.0
    score: float = 0.0

    def __str__(self) -> str:
        said = [f"{self.check:g} for the check of likeness"] * bool(self.check)
        said += [f"{self.score:g} for the score on private records"] * bool(self.score)
        return " and ".join(said)

    def whole(self, promise: PrivacyGuarantee) -> PrivacyGuarantee:
        """Return the promise of a release together with its counts."""
        epsilon = above(sum(map(exact, (promise.epsilon, self.check, self.score))))
        return replace(promise, epsilon=epsilon)

    def spends(self, released: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what is spent, in order: by the check, the release, the score."""
        plain: Any = {"delta": 0.0, "gamma": 0.0, "confidence": None, "assumed": COUNTED}
        counts = {
            name: {
                "guarantee": replace(released["guarantee"], epsilon=epsilon, **plain),
                "law": NoiseLaw("laplace", epsilon),
                "label": f"{name} of {released['label']}",
            }
            for name, epsilon in (("check", self.check), ("score", self.score))
            if epsilon
        }
        return [*filter(None, (counts.get("check"), released, counts.get("score")))]

    def check_fits(self, draft: Any) -> None:
        """Refuse counts that are not defined, or too noisy to be of use."""
        n, known, target = draft.n_samples, draft.sensitivity, draft.target
        is_clipped = getattr(known, "clip", None) or getattr(known, "ranges", None)
        is_clipped = is_clipped and not isinstance(known, KnownSensitivity)
        has_ranges = is_clipped and draft.unit == "record"  # a person may have many outside
        fit = target.estimator if target.public_fit is None else target.public_fit
        is_label = fit is not None and is_classifier(fit) and np.ndim(draft.example.y) == 1
        is_scored = is_label and draft.unit == "record"
        for name, epsilon, fits, needed in (
            (
                "check",
                self.check,
                has_ranges,
                "a sampled sensitivity of records, clip='ranges'",
            ),
            ("score", self.score, is_scored, "one label of each record, no persons"),
        ):
            if epsilon and not (fits and n * epsilon >= LEAST[name]):
                raise ValueError(
                    f"{OWNER} may hold {name!r} for {needed}, and an epsilon of at least "
                    f"{LEAST[name]} / n. Got {epsilon:g} of n={n} {draft.unit}s: "
                    f"{'take a larger share' if fits else 'leave it out'}."
                )

    def check_alike(self, target: AlikeTarget, dataset: Dataset, source: ByteSource) -> None:
        """Refuse records many of which are outside the ranges of the oracle's."""
        most = MOST_OUTSIDE * dataset.n_records + math.log(1 / (2 * FALSE_ALARM)) / self.check
        n_outside = _noisy(lambda r: target.are_outside(r).sum(), dataset, self.check, source)
        if not n_outside <= most:
            raise UnlikeRecordsError(
                f"More than {MOST_OUTSIDE:.0%} of the private records are outside the ranges of "
                "the oracle's. Nothing else was released, and the epsilon of the check, "
                f"{self.check:g}, is spent. Compare the units and codes, as by skdp.compare."
            )

    def score_of(self, model: Estimator, dataset: Dataset, source: ByteSource) -> ScoreAt:
        """Return the share of records that a released model predicts right, with its error."""
        n, count = dataset.n_records, partial(n_right, model)
        share = _noisy(count, dataset, self.score, source) / n
        error = math.sqrt(2) / (n * self.score)
        return ScoreAt(float(np.clip(share, 0, 1)), error, error)


NO_SHARES = Shares()


def _noisy(
    count: Callable[[Dataset], Any], dataset: Dataset, epsilon: float, source: ByteSource
) -> float:
    mechanism = LaplaceMechanism(epsilon, code=None)
    released = evaluate_privately(
        lambda *parts, seed: count(Dataset(*parts)),
        *(dataset, 0, ()),
        lambda exact: mechanism.release(exact, 1.0, source),
    )
    return float(released)


def n_right(model: Estimator, records: Dataset) -> int:
    """Count right predictions; a record at which the model fails counts as wrong.

    A batch has as many records whether the model fails at some or not, since in another batch the
    others might be rounded, or drawn, in another way.
    """

    def right(places: NDArray[np.intp]) -> NDArray[np.bool_]:
        some = records.take(places)
        predicted = as_objects(spare(model).predict(some.X))  # it may keep what it saw
        is_alike = predicted.shape == places.shape
        return np.equal(predicted, as_objects(some.y)) if is_alike else np.zeros(len(places), bool)

    def failing(places: NDArray[np.intp]) -> list[int]:
        with suppress(*FAILS):
            right(places)
            return []
        middle = len(places) // 2
        return failing(places[:middle]) + failing(places[middle:]) if middle else places.tolist()

    places, found = np.arange(records.n_records), 0
    if _is_one_by_one(model):
        with suppress(*FAILS):
            return int(right(places).sum())
        fails = np.isin(places, failing(places))
        with suppress(*FAILS):
            return int(np.sum(right(np.where(fails, places[~fails][0], places)) & ~fails))
    for i in places:
        with suppress(*FAILS):
            found += int(right(places[i : i + 1])[0])
    return found


def _is_one_by_one(value: Any) -> bool:
    """Return whether a model is known to predict a record alike whatever the others are."""
    if isinstance(value, list | tuple):
        return all(map(_is_one_by_one, value))
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind = type(value)
        package, module, *_ = *kind.__module__.split("."), ""
        is_listed = bool({module, kind.__name__} & {*ONE_BY_ONE.split()})
        is_known = package == "skdp" or (package == "sklearn" and is_listed)
        return is_known and _is_one_by_one([*value.get_params(deep=False).values()])
    name, home = (str(getattr(value, each, "")) for each in ("__name__", "__module__"))
    is_of_entries = isinstance(value, np.ufunc | type) and getattr(np, name, None) is value
    return not callable(value) or is_of_entries or home.startswith("skdp.")


def split(given: Any) -> tuple[Mechanism, Shares]:
    """Split the epsilon of a mechanism into that of a release and those of its counts."""
    shares, mechanism = given.shares, given.mechanism
    if shares is None:
        return mechanism, NO_SHARES
    epsilon = mechanism.get_params().get("epsilon", math.inf)
    epsilon = check_real("epsilon", epsilon, type(mechanism).__name__, 0.0, closed="r")
    is_dict = isinstance(shares, Mapping) and set(shares) <= set(LEAST)
    values = [*shares.values()] if is_dict else []
    is_share = all(map(is_real, values)) and 0 < min(values, default=0) <= sum(values) <= 0.5
    if not (is_share and math.isfinite(epsilon)):
        raise ValueError(
            f"{OWNER} must be None, or say which shares of a finite epsilon, at most .5 in all, "
            "pay for a 'check' of the records, a 'score' on them, or both, such as "
            f"{{'score': 0.05}}. Got {shown(shares)} of epsilon={epsilon:g}."
        )
    parts = {name: below(finite(share) * finite(epsilon)) for name, share in shares.items()}
    left = below(finite(epsilon) - sum(map(finite, parts.values())))
    return clone(mechanism).set_params(epsilon=left), Shares(**parts)
