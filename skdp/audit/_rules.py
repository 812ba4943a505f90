"""Which outputs give a dataset away: rules for guessing, learned from samples.

A rule is a score, large where x is likelier and small where x' is, with two thresholds. It is
learned on one part of the search runs, its thresholds on the other part. A poor rule costs power
and never validity, because a certificate is computed on runs that the rule has not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from skdp.audit.certificates import label_bound, pair_bound


class Score(Protocol):
    """A number for each output, larger where x is likelier."""

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Score the outputs."""
        ...


CUT_ALPHA, RULE_ALPHA = 1e-4, 1e-2
"""Levels at which thresholds and then rules are compared in a search. Both are strict: the best
of many looks better than it is, and there are more thresholds than rules."""

MANY_ATOMS = 100
MIN_CONTINUOUS = 50
MIN_ATOM_COUNT = 5
"""A value seen this often is an atom; outputs from a density do not repeat in double precision."""


def as_outputs(values: ArrayLike) -> NDArray[Any]:
    """Turn the outputs of a mechanism into an array with one row per run.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, ...)
        Numbers, booleans, strings, or anything with a string form.

    Returns
    -------
    ndarray of shape (n,) or (n, d)
        Numbers stay numbers, everything else becomes text; a single column is flattened.
    """
    outputs = np.asarray(values)
    if outputs.dtype == bool:
        outputs = outputs.astype(np.int64)
    elif not np.issubdtype(outputs.dtype, np.number):
        outputs = outputs.astype(str)
    if outputs.ndim > 1:
        outputs = outputs.reshape(len(outputs), -1)
        outputs = outputs[:, 0] if outputs.shape[1] == 1 else outputs
    return outputs


class AtomTable:
    """The values that repeat in a sample, whatever their type, and their index in new samples.

    Parameters
    ----------
    sample : ndarray of shape (n,) or (n, d)
        From :func:`as_outputs`.
    min_count : int, default=MIN_ATOM_COUNT
        How often a value has to occur.

    Attributes
    ----------
    share : float in [0, 1]
        Part of the sample that consists of atoms.
    atoms : ndarray of shape (n_atoms,) or (n_atoms, d)
        The values, sorted.
    """

    def __init__(self, sample: NDArray[Any], min_count: int = MIN_ATOM_COUNT) -> None:
        self._text = None if np.issubdtype(sample.dtype, np.number) else np.unique(sample)
        keys = self._keys(sample)
        unique, first, counts = np.unique(keys, return_index=True, return_counts=True)
        repeated = counts >= min_count
        self._atom_keys = unique[repeated]
        atoms = sample[first[repeated]]
        order = np.lexsort(atoms.T[::-1] if atoms.ndim == 2 else (atoms,))
        self.atoms, self._rank = atoms[order], np.argsort(order)
        self.share = float(counts[repeated].sum() / max(len(sample), 1))

    def _keys(self, sample: NDArray[Any]) -> NDArray[np.uint64]:
        """Hash every row to 64 bits; a collision would only blur the rule."""
        columns = sample.reshape(len(sample), -1)
        if self._text is not None:
            place = np.searchsorted(self._text, columns).clip(max=len(self._text) - 1)
            columns = np.where(self._text[place] == columns, place, -1)
        # Adding zero merges the two zeros, whose bits differ.
        bits = np.ascontiguousarray(columns + 0.0).view(np.uint64)
        mixed = (bits ^ (bits >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
        if columns.shape[1] == 1:
            return mixed[:, 0]
        odd = np.random.default_rng(0).integers(2**63, size=columns.shape[1], dtype=np.uint64)
        return ((mixed ^ (mixed >> np.uint64(29))) * (2 * odd + np.uint64(1))).sum(axis=1)

    def index(self, sample: NDArray[Any]) -> NDArray[np.intp]:
        """Return the index of the atom in each row, -1 where there is none.

        Parameters
        ----------
        sample : ndarray of shape (n,) or (n, d)
            From :func:`as_outputs`.

        Returns
        -------
        ndarray of shape (n,)
            Indices into `atoms`.
        """
        if len(self._atom_keys) == 0:
            return np.full(len(sample), -1)
        keys = self._keys(sample)
        place = np.searchsorted(self._atom_keys, keys).clip(max=len(self._atom_keys) - 1)
        return np.where(self._atom_keys[place] == keys, self._rank[place], -1)


class CellScore:
    """Log ratio of the frequencies of atoms and, between them, of intervals.

    The intervals hold equal shares of the sample in the middle and ever smaller ones toward both
    ends, where privacy losses live. A ratio is pulled toward 0 by one standard error.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d)
        Samples on either dataset. Vectors may only have atoms.
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any]) -> None:
        pooled = np.concatenate([x, y])
        self.table = AtomTable(pooled)
        self.edges = np.array([])
        if x.ndim == 1 and np.issubdtype(pooled.dtype, np.number):
            rest = pooled[(self.table.index(pooled) < 0) & np.isfinite(pooled)]
            if len(rest) >= MIN_CONTINUOUS:
                self.edges = np.unique(np.quantile(rest, _quantile_levels(len(rest))))
        n_cells = len(self.table.atoms) + len(self.edges) + 2
        in_x = np.bincount(self._cells(x), minlength=n_cells) + 0.5
        in_y = np.bincount(self._cells(y), minlength=n_cells) + 0.5
        ratio = np.log(in_x / in_y)
        error = np.sqrt(1 / in_x + 1 / in_y)
        self.score_ = np.sign(ratio) * np.maximum(np.abs(ratio) - error, 0.0)
        self.score_[0] = 0.0  # values that fit nowhere

    def _cells(self, sample: NDArray[Any]) -> NDArray[np.intp]:
        """Number the cells: 0 for unknown values, then the intervals, then the atoms."""
        atom = self.table.index(sample)
        cells = np.where(atom >= 0, atom + len(self.edges) + 2, 0)
        if len(self.edges):
            free = (atom < 0) & ~np.isnan(sample)
            cells[free] = 1 + np.searchsorted(self.edges, sample[free], side="right")
        return cells

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Score the outputs."""
        return self.score_[self._cells(outputs)]

    def __str__(self) -> str:
        return f"log ratio of {len(self.table.atoms)} atoms and {len(self.edges)} intervals"


def _quantile_levels(n: int) -> NDArray[np.float64]:
    """Levels of the cell edges: evenly spaced, and geometric toward both ends."""
    tail = np.geomspace(min(10 / n, 0.04), 0.05, 12)
    middle = np.linspace(0.05, 0.95, max(3, min(60, n // 200)))
    return np.concatenate([tail[:-1], middle, 1 - tail[-2::-1]])


@dataclass(frozen=True)
class LineScore:
    """The output itself: for losses that grow from one end of the line to the other."""

    sign: int

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Score the outputs."""
        return self.sign * np.nan_to_num(outputs.astype(np.float64), nan=0.0)

    def __str__(self) -> str:
        return "output"


class ClassifierScore:
    """Log odds of a boosted classifier that tells the two samples apart.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Samples on either dataset.
    seed : int
        Random state of the classifier.
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any], seed: int) -> None:
        labels = np.repeat([1, 0], [len(x), len(y)])
        model = HistGradientBoostingClassifier(
            max_iter=35, learning_rate=0.17, max_leaf_nodes=8, early_stopping=False,
            random_state=seed,
        )  # fmt: skip
        with threadpool_limits(1):  # on a busy machine more threads wait for each other
            self.model = model.fit(np.concatenate([x, y]), labels)

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Score the outputs."""
        with threadpool_limits(1):
            return self.model.decision_function(outputs)

    def __str__(self) -> str:
        return "log odds of a classifier"


class LinearScore:
    """The linear discriminant of the two samples: little to learn, so good for small losses.

    Parameters
    ----------
    x, y : ndarray of shape (n, d)
        Samples on either dataset.
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any]) -> None:
        pooled = np.cov(x, rowvar=False) + np.cov(y, rowvar=False)
        self.direction = np.linalg.lstsq(pooled, x.mean(axis=0) - y.mean(axis=0), rcond=1e-9)[0]

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Score the outputs."""
        return outputs @ self.direction

    def __str__(self) -> str:
        return "linear score"


Candidate = tuple[Score, NDArray[np.float64], NDArray[np.float64]]


def candidate_scores(x: NDArray[Any], y: NDArray[Any], seed: int) -> list[Candidate]:
    """Learn the scores that suit the type of the outputs.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d)
        Samples on either dataset, from :func:`as_outputs`.
    seed : int
        For the classifier.

    Returns
    -------
    list of (Score, ndarray, ndarray)
        A score, and its values on outputs of either dataset that it was not learned on.
    """
    numeric = np.issubdtype(x.dtype, np.number)
    half = len(x) // 2
    cells = CellScore(x[:half], y[:half])
    tabulated: list[Candidate] = [(cells, cells(x[half:]), cells(y[half:]))]
    if x.ndim == 1:
        lines = [LineScore(1), LineScore(-1)] if numeric else []
        return tabulated + [(line, line(x), line(y)) for line in lines]
    if not numeric or (cells.table.share > 0.9 and len(cells.table.atoms) <= MANY_ATOMS):
        return tabulated
    learners = (LinearScore, partial(ClassifierScore, seed=seed))
    learned = [_cross_fitted(learn, x, y) for learn in learners]
    return learned + (tabulated if cells.table.share > 0.5 else [])


def _cross_fitted(learn: Callable[..., Score], x: NDArray[Any], y: NDArray[Any]) -> Candidate:
    """Learn a score on everything, and score each half by what was learned on the other."""
    half = len(x) // 2
    first, second = learn(x[:half], y[:half]), learn(x[half:], y[half:])
    held_out = [np.concatenate([second(s[:half]), first(s[half:])]) for s in (x, y)]
    return learn(x, y), held_out[0], held_out[1]


@dataclass(frozen=True)
class Rule:
    """Guess x where the score is at least `above`, x' where it is at most `below`."""

    score: Score = field(repr=False)
    above: float
    below: float
    value: float
    """Lower bound that the rule reaches on the runs its thresholds were chosen on."""

    def __str__(self) -> str:
        # A negated output is shown as the output: its inequalities turn around.
        sign = getattr(self.score, "sign", 1)
        parts = [
            f"{side} if {self.score} {'>=' if way * sign > 0 else '<='} {sign * limit:.4g}"
            for side, way, limit in (("x", 1, self.above), ("x'", -1, self.below))
            if np.isfinite(limit)
        ]
        return ", ".join(parts) or "no event"

    def counts(self, outputs: NDArray[Any]) -> tuple[int, int]:
        """Count the guesses of x and of x'.

        Parameters
        ----------
        outputs : ndarray of shape (n,) or (n, d)
            From :func:`as_outputs`.

        Returns
        -------
        for_x, for_y : int
            Number of outputs on either side.
        """
        scores = self.score(outputs)
        return int((scores >= self.above).sum()), int((scores <= self.below).sum())


def _tails(x: NDArray[np.float64], y: NDArray[np.float64]):
    """Counts of both samples in every half-line [t, inf), from the empty one on."""
    pooled = np.sort(np.concatenate([x, y]))[::-1]
    # Few cuts, dense in the tail: each more is one more chance to look good by luck.
    ranks = np.unique(np.geomspace(20, len(pooled), 80).astype(int)) - 1
    cuts = np.unique(pooled)[::-1]
    cuts = cuts if len(cuts) < 80 else np.unique(pooled[ranks])[::-1]
    hits_x = len(x) - np.searchsorted(np.sort(x), cuts, side="left")
    hits_y = len(y) - np.searchsorted(np.sort(y), cuts, side="left")
    empty = np.zeros(1, dtype=int)
    return np.append(np.inf, cuts), np.append(empty, hits_x), np.append(empty, hits_y)


def label_rule(candidate: Candidate, alpha: float) -> Rule:
    """Choose the two thresholds that certify most in the label test.

    For a given price of a wrong guess the best half-line on either side is found separately;
    running over the prices gives every undominated pair of thresholds.

    Parameters
    ----------
    candidate : tuple
        From :func:`candidate_scores`.
    alpha : float in (0, 1)
        Level of the final test; the search compares at stricter ones.

    Returns
    -------
    Rule
        The best rule.
    """
    score, in_x, in_y = candidate
    cut_x, right_x, wrong_x = _tails(in_x, in_y)
    cut_y, right_y, wrong_y = _tails(-in_y, -in_x)
    price = np.exp(np.linspace(0.0, 12.0, 97))[:, None]
    best_x = np.argmax(right_x - price * wrong_x, axis=1)
    best_y = np.argmax(right_y - price * wrong_y, axis=1)
    # Either side alone is a candidate too: position 0 of the cuts is the empty half-line.
    i = np.concatenate([best_x, best_x, 0 * best_y])
    j = np.concatenate([best_y, 0 * best_x, best_y])
    right = right_x[i] + right_y[j]
    guesses = right + wrong_x[i] + wrong_y[j]
    strict = label_bound(right, guesses, min(alpha, CUT_ALPHA))
    strict[cut_x[i] <= -cut_y[j]] = -1.0  # ties could make the two sides overlap: one guess a run
    k = int(np.argmax(strict))
    value = label_bound(right[k], guesses[k], min(alpha, RULE_ALPHA))
    return Rule(score, float(cut_x[i[k]]), -float(cut_y[j[k]]), float(value))


def pair_rule(candidate: Candidate, alpha: float, delta: float) -> Rule:
    """Choose the one event that certifies most in the pair test.

    Parameters
    ----------
    candidate : tuple
        From :func:`candidate_scores`.
    alpha : float in (0, 1)
        Level of the final test; the search compares at stricter ones.
    delta : float in [0, 1)
        The delta at which epsilon is bounded.

    Returns
    -------
    Rule
        The best rule; it guesses on one side only.
    """
    score, in_x, in_y = candidate
    options = []
    for way, high, low in ((1, in_x, in_y), (-1, -in_y, -in_x)):
        cuts, hits, misses = _tails(high, low)
        strict = pair_bound(hits, len(high), misses, len(low), min(alpha, CUT_ALPHA), delta)
        k = int(np.argmax(strict))
        value = pair_bound(hits[k], len(high), misses[k], len(low), min(alpha, RULE_ALPHA), delta)
        options.append((float(value), way * float(cuts[k]), way))
    best, limit, way = max(options)
    above, below = (limit, -np.inf) if way > 0 else (np.inf, limit)
    return Rule(score, above, below, best)
