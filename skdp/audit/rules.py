"""Rules for guessing a dataset from an output, learned from samples.

A rule is a score, large where x is likelier and small where x' is, with two thresholds. It is
learned on one part of the search runs, its thresholds on the other part. A poor rule costs power
and never validity, because a certificate is computed on runs that the rule has not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from skdp.audit.certificates import clopper_pearson
from skdp.audit.outputs import MIN_ATOM_COUNT, MIN_CONTINUOUS, AtomTable, Outputs, index_among

CUT_ALPHA, RULE_ALPHA = 1e-3, 0.05
"""Levels of the lower limits of rates, by which a search compares first thresholds and then rules.
The best of many looks better than it is, and there are many more thresholds than rules."""

MANY_ATOMS = 100
MANY_COLUMNS = 32
N_RESIDUES = 16

Score = Callable[[Outputs], NDArray[np.float64]]  # larger where x is likelier, nan for no guess
Learn = Callable[[Outputs, Outputs], Score]
Keys = Callable[[Outputs], NDArray]  # one key or more for each output
Bound = Callable[[NDArray, NDArray], NDArray]  # of epsilon, from right guesses and wrong ones


class Candidate(NamedTuple):
    """A score, its values on outputs held out, and the level of the rate that it is valued by."""

    name: str
    score: Score
    in_x: NDArray[np.float64]
    in_y: NDArray[np.float64]
    level: float = RULE_ALPHA


def candidate_scores(x: Outputs, y: Outputs, seed: int) -> list[Candidate]:
    """Learn the scores that suit the outputs, each with its values on outputs held out."""
    half = len(x) // 2
    cells = _Cells(x[:half], y[:half])
    in_cells = learn_frequencies(x[:half], y[:half], cells)
    by_cells = Candidate(
        "log ratio of atoms and intervals", in_cells, in_cells(x[half:]), in_cells(y[half:])
    )
    tabulated = [_cross_fit("log ratio of atoms", partial(learn_frequencies, keys=_atoms), x, y)]
    few = cells.table.share > 0.9 and len(cells.table) <= MANY_ATOMS
    step = max(_step(x.written), _step(y.written))
    codes: dict[str, Keys] = {"exponents and trailing zeros": _sizes}
    if step:
        codes[f"residues modulo {step:.3g}"] = partial(_residues, step=step)
    for name, keys in {} if few else codes.items():
        found = _cross_fit(f"log ratio of {name}", partial(learn_frequencies, keys=keys), x, y)
        # Most mechanisms have honest digits, and a leak there is large: lucky rules must not win.
        tabulated.append(found._replace(level=CUT_ALPHA))
    if few or x.n_columns == 1 or cells.table.share > 0.5:
        tabulated.insert(0, by_cells)
    if x.n_columns == 1:
        scores = {"output": _rising, "-output": lambda new: -_rising(new)}
        return tabulated + [Candidate(name, s, s(x), s(y)) for name, s in scores.items()]
    if few:
        return tabulated
    learn = partial(learn_classifier, seed=seed)
    return [_cross_fit("log odds of a classifier", learn, x, y), *tabulated]


def _cross_fit(name: str, learn: Learn, x: Outputs, y: Outputs) -> Candidate:
    """Learn a score on everything, and score each half by what was learned on the other."""
    half = len(x) // 2
    first, second = learn(x[:half], y[:half]), learn(x[half:], y[half:])
    in_x, in_y = (np.concatenate([second(s[:half]), first(s[half:])]) for s in (x, y))
    return Candidate(name, learn(x, y), in_x, in_y)


def _rising(outputs: Outputs) -> NDArray[np.float64]:
    """Score by the output itself, for losses that grow from one end of the line to the other."""
    return np.nan_to_num(outputs.values[:, 0], nan=np.nan)  # infinite ones become finite


def learn_frequencies(x: Outputs, y: Outputs, keys: Keys) -> Score:
    """Learn the log ratio of the frequencies of keys, summed over the keys of an output."""
    in_x, in_y = keys(x).ravel(), keys(y).ravel()
    known, counts = np.unique(np.concatenate([in_x, in_y]), return_counts=True)
    known = known[counts >= MIN_ATOM_COUNT]
    indices = (index_among(known, each) for each in (in_x, in_y))
    n_x, n_y = (np.bincount(i[i >= 0], minlength=len(known)) + 0.5 for i in indices)
    ratio = np.log(n_x / n_y)
    # pulled toward 0 by one standard error, and 0 for rare and unknown keys
    shrunk = np.sign(ratio) * np.maximum(np.abs(ratio) - np.sqrt(1 / n_x + 1 / n_y), 0.0)
    ratios = np.append(shrunk, 0.0)  # the last of unknown keys, whose index is -1
    return lambda new: ratios[index_among(known, keys(new))].reshape(len(new), -1).sum(axis=1)


class _Cells:
    """Numbers of cells: atoms, and intervals between them, ever smaller toward both ends."""

    def __init__(self, x: Outputs, y: Outputs) -> None:
        pooled = Outputs.joined(x, y)
        self.table = AtomTable(pooled)
        self.edges = np.array([])
        values = pooled.values[:, 0]
        rest = values[(self.table.index(pooled) < 0) & np.isfinite(values)]
        if pooled.n_columns == 1 and len(rest) >= MIN_CONTINUOUS:
            n = len(rest)
            tail = np.geomspace(min(10 / n, 0.04), 0.05, 12)
            middle = np.linspace(0.05, 0.95, max(3, min(60, n // 200)))
            levels = np.concatenate([tail[:-1], middle, 1 - tail[-2::-1]])
            self.edges = np.unique(np.quantile(rest, levels))

    def __call__(self, outputs: Outputs) -> NDArray[np.intp]:
        """Return the cell of each output: -1 for none, then the intervals, then the atoms."""
        atom = self.table.index(outputs)
        cells = np.where(atom >= 0, atom + len(self.edges) + 1, -1)
        if len(self.edges):
            free = (atom < 0) & np.isfinite(outputs.values[:, 0])
            cells[free] = np.searchsorted(self.edges, outputs.values[free, 0], side="right")
        return cells


def _atoms(outputs: Outputs) -> NDArray[np.uint64]:
    """Return keys of the whole output and of its columns, which show a rare exact value."""
    columns = range(outputs.n_columns) if 1 < outputs.n_columns <= MANY_COLUMNS else ()
    parts = [outputs.rows, *(outputs.column(j).rows + np.uint64(j + 1) for j in columns)]
    return np.stack(parts, axis=1)


# Codes of how numbers are written in binary, a key for each number and its column. The sum of a
# value and of noise is rounded at the size of the larger of the two, so its last bits tell them
# apart (Mironov, "On significance of the least significant bits for differential privacy", CCS
# 2012). Numbers on a lattice tell by where the lattice lies.


def _sizes(outputs: Outputs) -> NDArray[np.int64]:
    """Return the exponents and the numbers of trailing zeros of the significands."""
    values = np.where(np.isfinite(outputs.written), outputs.written, 0.0)
    significand, exponent = np.frexp(values)
    whole = np.ldexp(np.abs(significand), 53).astype(np.int64)
    zeros = np.frexp(np.maximum(whole & -whole, 1).astype(np.float64))[1] - 1
    return 64 * exponent.astype(np.int64) + zeros + 2**20 * np.arange(values.shape[1])


def _residues(outputs: Outputs, step: float) -> NDArray[np.int64]:
    """Return the place of each number between two multiples of a step."""
    values = np.where(np.isfinite(outputs.written), outputs.written, 0.0)
    place = np.rint(N_RESIDUES * np.fmod(values, step) / step).astype(np.int64) % N_RESIDUES
    return place + 2**20 * np.arange(values.shape[1])


def _step(values: NDArray[np.float64]) -> float:
    """Return the step of the lattice that a sample may lie on: nearly its smallest gap."""
    unique = np.unique(values[np.isfinite(values)])
    gaps = np.diff(unique)
    gaps = gaps[gaps > 1e-9 * np.median(np.abs(unique))] if len(gaps) else gaps
    return float(np.quantile(gaps, 0.01, method="lower")) if len(gaps) else 0.0


def learn_classifier(x: Outputs, y: Outputs, seed: int) -> Score:
    """Learn a boosted classifier that tells the two samples apart, for its log odds."""
    labels = np.repeat([1, 0], [len(x), len(y)])
    model = HistGradientBoostingClassifier(
        max_iter=35, learning_rate=0.17, max_leaf_nodes=8, early_stopping=False, random_state=seed
    )
    # on a busy machine more threads wait for each other
    alone = threadpool_limits.wrap(limits=1)
    alone(model.fit)(np.concatenate([x.features, y.features]), labels)
    return lambda outputs: alone(model.decision_function)(outputs.features)


@dataclass(frozen=True)
class Rule:
    """Guess x where the score is at least `above`, x' where it is at most `below`."""

    name: str
    score: Score = field(repr=False)
    above: float
    below: float
    value: float  # the lower bound to be expected in the final runs

    def __str__(self) -> str:
        parts = [f"x if {self.name} >= {self.above:.4g}"] if self.above < np.inf else []
        parts += [f"x' if {self.name} <= {self.below:.4g}"] if self.below > -np.inf else []
        return ", ".join(parts) or "nothing"

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
    cuts = np.append(np.inf, cuts)
    hits_x, hits_y = (len(s) - np.searchsorted(s, cuts, side="left") for s in (x, y))
    return cuts, hits_x, hits_y


def choose_rule(candidate: Candidate, bound: Bound, n_final: float, both_sides: bool) -> Rule:
    """Choose the thresholds of a score that will certify most in n_final runs on each dataset."""
    name, score, in_x, in_y, level = candidate
    cut_x, right_x, wrong_x = _tails(in_x, in_y)
    cut_y, right_y, wrong_y = _tails(-in_y, -in_x)
    best_x, best_y = np.arange(len(cut_x)), np.arange(len(cut_y))
    if both_sides:  # for each price of a wrong guess the best half-line on either side
        price = np.exp(np.linspace(0.0, 12.0, 97))[:, None]
        best_x = np.argmax(right_x - price * wrong_x, axis=1)
        best_y = np.argmax(right_y - price * wrong_y, axis=1)
    # Position 0 of the cuts is the empty half-line.
    i, j = np.append(best_x, 0 * best_y), np.append(0 * best_x, best_y)
    if both_sides:
        i, j = np.append(best_x, i), np.append(best_y, j)
    right, wrong = right_x[i] + right_y[j], wrong_x[i] + wrong_y[j]

    def projected(level: float) -> NDArray[np.float64]:
        """Project the bound to the final runs, at a share of right guesses that is likely less."""
        share, _ = clopper_pearson(right, right + wrong, level)
        final = n_final / len(in_x) * (right + wrong)
        return bound(share * final, (1 - share) * final)

    strict = projected(CUT_ALPHA)
    strict[cut_x[i] <= -cut_y[j]] = -1.0  # ties could make the two sides overlap: one guess a run
    k = int(np.argmax(strict))
    above, below = float(cut_x[i[k]]), -float(cut_y[j[k]])
    return Rule(name, score, above, below, float(projected(level)[k]))
