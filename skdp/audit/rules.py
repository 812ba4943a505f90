"""Rules for guessing a dataset from an output, learned from samples.

A rule is a score, large where x is likelier and small where x' is, with two thresholds. It is
learned on one part of the search runs, its thresholds on the other part. A poor rule costs power
and never validity, because a certificate is computed on runs that the rule has not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from skdp.audit.certificates import label_bound, lower_limit, pair_bound
from skdp.audit.digits import Code, codes_for
from skdp.audit.outputs import MIN_ATOM_COUNT, AtomTable, Outputs


class Score(Protocol):
    """A function from outputs to numbers, larger where x is likelier, nan for no guess."""

    def __call__(self, outputs: Outputs) -> NDArray[np.float64]:
        """Score the outputs."""
        ...


CUT_ALPHA, RULE_ALPHA = 1e-3, 0.05
"""Levels of the lower limits of rates, by which a search compares first thresholds and then rules.
The best of many looks better than it is, and there are many more thresholds than rules."""

MANY_ATOMS = 100
MIN_CONTINUOUS = 50
MANY_COLUMNS = 32


Keys = Callable[[Outputs], NDArray]  # one key or more for each output


class FrequencyScore:
    """Log ratio of the frequencies of keys, summed over the keys of an output.

    A ratio is pulled toward 0 by one standard error, and is 0 for rare and unknown keys.
    """

    def __init__(self, x: Outputs, y: Outputs, name: str, keys: Keys) -> None:
        self.name, self.keys = name, keys
        in_x, in_y = keys(x).ravel(), keys(y).ravel()
        known, counts = np.unique(np.concatenate([in_x, in_y]), return_counts=True)
        self.known = known[counts >= MIN_ATOM_COUNT]
        both = (np.bincount(self._index(k), minlength=len(self.known) + 1) for k in (in_x, in_y))
        in_x, in_y = (counts + 0.5 for counts in both)
        ratio = np.log(in_x / in_y)
        score = np.sign(ratio) * np.maximum(np.abs(ratio) - np.sqrt(1 / in_x + 1 / in_y), 0.0)
        self.score_ = np.append(score[:-1], 0.0)

    def _index(self, keys: NDArray) -> NDArray[np.intp]:
        """Return the index of each key among the known ones, and their number elsewhere."""
        place = np.searchsorted(self.known, keys)
        padded = np.append(self.known, np.zeros(1, self.known.dtype))
        return np.where(padded[place] == keys, place, len(self.known))

    def __call__(self, outputs: Outputs) -> NDArray[np.float64]:
        """Score the outputs."""
        keys = self.keys(outputs)
        return self.score_[self._index(keys)].reshape(len(outputs), -1).sum(axis=1)

    def __str__(self) -> str:
        return f"log ratio of {len(self.known)} {self.name}"


class Cells:
    """Numbers of cells: the atoms and, between them, intervals.

    The intervals hold equal shares of the sample in the middle and ever smaller ones toward both
    ends, where privacy losses live.
    """

    def __init__(self, x: Outputs, y: Outputs) -> None:
        pooled = Outputs.joined(x, y)
        self.table = AtomTable(pooled, stand_out=pooled.values.ndim == 1)
        self.edges = np.array([])
        if pooled.values.ndim == 1:
            rest = pooled.values[(self.table.index(pooled) < 0) & np.isfinite(pooled.values)]
            if len(rest) >= MIN_CONTINUOUS:
                self.edges = np.unique(np.quantile(rest, _quantile_levels(len(rest))))

    def __call__(self, outputs: Outputs) -> NDArray[np.intp]:
        """Return the cell of each output: -1 for none, then the intervals, then the atoms."""
        atom = self.table.index(outputs)
        cells = np.where(atom >= 0, atom + len(self.edges) + 1, -1)
        if len(self.edges):
            free = (atom < 0) & np.isfinite(outputs.values)
            cells[free] = np.searchsorted(self.edges, outputs.values[free], side="right")
        return cells


def _quantile_levels(n: int) -> NDArray[np.float64]:
    """Return the levels of the cell edges: evenly spaced, and geometric toward both ends."""
    tail = np.geomspace(min(10 / n, 0.04), 0.05, 12)
    middle = np.linspace(0.05, 0.95, max(3, min(60, n // 200)))
    return np.concatenate([tail[:-1], middle, 1 - tail[-2::-1]])


def _atoms(outputs: Outputs) -> NDArray[np.uint64]:
    """Return keys of the whole output and of its columns.

    An exact value now and then is lost among the intervals and in a classifier, and rare enough
    that every run has to be learned from.
    """
    n_columns = outputs.keys.shape[1]
    columns = range(n_columns) if 1 < n_columns <= MANY_COLUMNS else ()
    parts = [outputs.rows, *(outputs.column(j).rows + np.uint64(j + 1) for j in columns)]
    return np.stack(parts, axis=1)


def _digits(outputs: Outputs, code: Code) -> NDArray[np.int64]:
    """Return a key for each number of an output, made of its code and its column."""
    codes = code(outputs.written.reshape(len(outputs), -1))
    return codes + 2**20 * np.arange(codes.shape[1])


@dataclass(frozen=True)
class LineScore:
    """Score of the output itself, for losses that grow from one end of the line to the other."""

    sign: int

    def __call__(self, outputs: Outputs) -> NDArray[np.float64]:
        """Score the outputs."""
        return self.sign * np.nan_to_num(outputs.values, nan=np.nan)  # infinite ones become finite

    def __str__(self) -> str:
        return "output"


class ClassifierScore:
    """Log odds of a boosted classifier that tells the two samples apart."""

    def __init__(self, x: Outputs, y: Outputs, seed: int) -> None:
        labels = np.repeat([1, 0], [len(x), len(y)])
        model = HistGradientBoostingClassifier(
            max_iter=35, learning_rate=0.17, max_leaf_nodes=8, early_stopping=False,
            random_state=seed,
        )  # fmt: skip
        with threadpool_limits(1):  # on a busy machine more threads wait for each other
            self.model = model.fit(np.concatenate([x.features, y.features]), labels)

    def __call__(self, outputs: Outputs) -> NDArray[np.float64]:
        """Score the outputs."""
        with threadpool_limits(1):
            return self.model.decision_function(outputs.features)

    def __str__(self) -> str:
        return "log odds of a classifier"


class LinearScore:
    """Linear discriminant of the two samples: it has little to learn, which suits small losses."""

    def __init__(self, x: Outputs, y: Outputs) -> None:
        a, b = (np.nan_to_num(sample.features) for sample in (x, y))
        pooled = np.cov(a, rowvar=False) + np.cov(b, rowvar=False)
        self.direction = np.linalg.lstsq(pooled, a.mean(axis=0) - b.mean(axis=0), rcond=1e-9)[0]

    def __call__(self, outputs: Outputs) -> NDArray[np.float64]:
        """Score the outputs."""
        return np.nan_to_num(outputs.features) @ self.direction

    def __str__(self) -> str:
        return "linear score"


class Candidate(NamedTuple):
    """A score, its values on outputs held out, and the level of the rate that it is valued by."""

    score: Score
    in_x: NDArray[np.float64]
    in_y: NDArray[np.float64]
    level: float = RULE_ALPHA


def candidate_scores(x: Outputs, y: Outputs, seed: int) -> list[Candidate]:
    """Learn the scores that suit the outputs, each with its values on outputs held out."""
    half = len(x) // 2
    cells = Cells(x[:half], y[:half])
    in_cells = FrequencyScore(x[:half], y[:half], "atoms and intervals", cells)
    tabulated = [Candidate(in_cells, in_cells(x[half:]), in_cells(y[half:]))]
    tabulated.append(_cross_fitted(partial(FrequencyScore, name="atoms", keys=_atoms), x, y))
    few = cells.table.share > 0.9 and len(cells.table) <= MANY_ATOMS
    for name, code in {} if few else codes_for(x, y).items():
        learn = partial(FrequencyScore, name=name, keys=partial(_digits, code=code))
        # Most mechanisms have honest digits, and a leak there is large: lucky rules must not win.
        tabulated.append(_cross_fitted(learn, x, y)._replace(level=CUT_ALPHA))
    if x.values.ndim == 1:
        is_ordered = np.isfinite(x.values).any() or np.isfinite(y.values).any()
        lines = [LineScore(1), LineScore(-1)] if is_ordered else []
        return tabulated + [Candidate(line, line(x), line(y)) for line in lines]
    if few:
        return tabulated
    learners = (LinearScore, partial(ClassifierScore, seed=seed))
    learned = [_cross_fitted(learn, x, y) for learn in learners]
    return learned + (tabulated if cells.table.share > 0.5 else tabulated[1:])


def _cross_fitted(learn: Callable[..., Score], x: Outputs, y: Outputs) -> Candidate:
    """Learn a score on everything, and score each half by what was learned on the other."""
    half = len(x) // 2
    first, second = learn(x[:half], y[:half]), learn(x[half:], y[half:])
    held_out = [np.concatenate([second(s[:half]), first(s[half:])]) for s in (x, y)]
    return Candidate(learn(x, y), held_out[0], held_out[1])


@dataclass(frozen=True)
class Rule:
    """Guess x where the score is at least `above`, x' where it is at most `below`."""

    score: Score = field(repr=False)
    above: float
    below: float
    value: float
    """Lower bound that the rule is expected to reach in the final runs."""
    candidates: tuple[str, ...] = ()
    """All scores that the rule was chosen from."""
    shape: tuple[int, ...] = ()
    """Shape of one output."""

    def __str__(self) -> str:
        # A negated output is shown as the output: its inequalities turn around.
        sign = getattr(self.score, "sign", 1)
        parts = [
            f"{side} if {self.score} {'>=' if way * sign > 0 else '<='} {sign * limit:.4g}"
            for side, way, limit in (("x", 1, self.above), ("x'", -1, self.below))
            if np.isfinite(limit)
        ]
        return ", ".join(parts) or "no event"

    def counts(self, outputs: Outputs) -> tuple[int, int]:
        """Count the guesses of x and of x'."""
        scores = self.score(outputs)
        return int((scores >= self.above).sum()), int((scores <= self.below).sum())


def _tails(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray, NDArray, NDArray]:
    """Count both samples in every half-line [t, inf), from the empty one on."""
    x, y = (np.sort(sample[~np.isnan(sample)]) for sample in (x, y))
    pooled = np.sort(np.concatenate([x, y]))[::-1]
    cuts = np.unique(pooled)[::-1]
    if len(cuts) >= 80:
        # Few cuts, dense in the tail: each more is one more chance to look good by luck.
        ranks = np.unique(np.geomspace(20, len(pooled), 80).astype(int)) - 1
        cuts = np.unique(pooled[ranks])[::-1]
    hits_x = len(x) - np.searchsorted(x, cuts, side="left")
    hits_y = len(y) - np.searchsorted(y, cuts, side="left")
    empty = np.zeros(1, dtype=int)
    return np.append(np.inf, cuts), np.append(empty, hits_x), np.append(empty, hits_y)


def _project_label(
    right: ArrayLike, guesses: ArrayLike, growth: float, alpha: float, strictness: float
) -> NDArray[np.float64]:
    """Project the bound of the label test to `growth` times the runs, at a rate likely exceeded."""
    rate = lower_limit(right, guesses, strictness)
    final = growth * np.asarray(guesses)
    return label_bound(rate * final, final, alpha)


def _project_pair(
    hits: NDArray,
    misses: NDArray,
    n: float,
    n_final: float,
    alpha: float,
    delta: float,
    strictness: float,
) -> NDArray[np.float64]:
    """Project the bound of the pair test to n_final runs, at a ratio that is likely exceeded."""
    share = lower_limit(hits, hits + misses, strictness)
    final = (hits + misses) * n_final / n
    less = np.minimum((1 - share) * final, n_final)
    return pair_bound(share * final, n_final, less, n_final, alpha, delta)


def label_rule(candidate: Candidate, alpha: float, n_final: float, delta: float = 0.0) -> Rule:
    """Choose the two thresholds that will certify most in the label test.

    For a given price of a wrong guess the best half-line on either side is found separately;
    running over the prices gives every undominated pair of thresholds. The test is for delta 0.
    """
    score, in_x, in_y, level = candidate
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
    growth = 2 * n_final / (len(in_x) + len(in_y))
    strict = _project_label(right, guesses, growth, alpha, CUT_ALPHA)
    strict[cut_x[i] <= -cut_y[j]] = -1.0  # ties could make the two sides overlap: one guess a run
    k = int(np.argmax(strict))
    value = _project_label(right[k], guesses[k], growth, alpha, level)
    return Rule(score, float(cut_x[i[k]]), -float(cut_y[j[k]]), float(value))


def pair_rule(candidate: Candidate, alpha: float, n_final: float, delta: float) -> Rule:
    """Choose the one event, on one side, that will certify most in the pair test."""
    score, in_x, in_y, level = candidate
    options = []
    for way, high, low in ((1, in_x, in_y), (-1, -in_y, -in_x)):
        cuts, hits, misses = _tails(high, low)
        sizes = (len(high), n_final, alpha, delta)
        k = int(np.argmax(_project_pair(hits, misses, *sizes, CUT_ALPHA)))
        value = _project_pair(hits[k], misses[k], *sizes, level)
        options.append((float(value), way * float(cuts[k]), way))
    best, limit, way = max(options)
    above, below = (limit, -np.inf) if way > 0 else (np.inf, limit)
    return Rule(score, above, below, best)
