"""The tests of an audit: each chooses a rule in search runs, and certifies it on final runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skdp.audit.certificates import label_bound, one_run_bound, pair_bound
from skdp.audit.densities import Samples
from skdp.audit.outputs import Outputs, as_outputs
from skdp.audit.privacy_loss import estimate_privacy_loss, show
from skdp.audit.rules import candidate_scores, choose_rule, lines

Rng = np.random.Generator
Runs = Callable[[Any, int, Rng], ArrayLike | Outputs]  # runs(dataset, n, rng) returns n outputs
Pair = tuple[Any, Any]
BLOCK = 2**19
"""Final runs at a time: millions of rows need not be in memory together."""

POINT_ALPHA = 1e-4
"""Level at which outputs are compared in the search of the local method; there are many."""

FRESH_EXPONENT = 1.15
"""Final densities have ``h ~ n**(-1.15/(d+4))``: less bias than the usual 1, a little noisier."""


class Found(NamedTuple):
    """A rule, the bound that is expected of it, all scores it was chosen from, and the columns."""

    value: float
    rule: Any
    candidates: tuple[str, ...]
    n_columns: int = 1


class Outcome(NamedTuple):
    """Certificate of the final stage, as fields of the result."""

    lower_bound: float
    estimate: float
    event: str
    sizes: dict[str, int]
    resolution: float


@dataclass(frozen=True)
class Method:
    """A test, with the mechanism, the numbers of runs, the level and the claimed delta."""

    mechanism: Runs
    n_search: int
    n_final: int
    alpha: float
    delta: float

    def run(self, x: object, n: int, rng: Rng, n_columns: int | None = None) -> Outputs:
        """Run the mechanism, and insist on one output per run and one shape of all outputs."""
        outputs = as_outputs(self.mechanism(x, n, rng))
        if len(outputs) != n:
            raise ValueError(f"The mechanism must return n={n} outputs. Got {len(outputs)}.")
        if n_columns not in (None, outputs.n_columns):
            raise ValueError(
                "The mechanism must return outputs of one shape on both datasets and in all runs. "
                f"Got {n_columns} and {outputs.n_columns} columns. Pad the shorter outputs."
            )
        return outputs

    def run_both(
        self, pair: Pair, n: int, rng: Rng, n_columns: int | None = None
    ) -> tuple[Outputs, Outputs]:
        """Run the mechanism n times on each dataset of a pair."""
        x = self.run(pair[0], n, rng, n_columns)
        return x, self.run(pair[1], n, rng, x.n_columns)


class LabelTest(Method):
    """Guess the dataset of each run, which a secret coin chooses, or abstain."""

    both_sides = True

    def bound(self, right: ArrayLike, wrong: ArrayLike) -> NDArray[np.float64]:
        """Bound epsilon by the numbers of right guesses and of wrong ones in the final runs."""
        return label_bound(right, np.add(right, wrong), self.alpha)

    def runs_on_x(self, rng: Rng) -> int:
        """Return how many of the 2 n_final final runs are on x."""
        # Independent fair coins, grouped by outcome: the runs are exchangeable.
        return int(rng.binomial(2 * self.n_final, 0.5))

    def search(self, pair: Pair, rng: Rng) -> Found:
        """Learn what suits the outputs, choose thresholds for each, and keep the best rule."""
        x, y = self.run_both(pair, self.n_search, rng)
        candidates = candidate_scores(x, y, seed=int(rng.integers(2**31)))
        rules = [choose_rule(c, self.bound, self.n_final, self.both_sides) for c in candidates]
        best = max(rules, key=lambda rule: rule.value)
        return Found(best.value, best, tuple(each.name for each in candidates), x.n_columns)

    def certify(self, pair: Pair, found: Found, rng: Rng) -> Outcome:
        """Count right and wrong guesses in final runs."""
        n, n_x = self.n_final, self.runs_on_x(rng)
        right_x, wrong_x = self._counts(pair[0], n_x, found, rng)
        wrong_y, right_y = self._counts(pair[1], 2 * n - n_x, found, rng)
        right, wrong = right_x + right_y, wrong_x + wrong_y
        return Outcome(
            float(self.bound(right, wrong)),
            _loss(right - self.delta * n, wrong),
            f"guess {found.rule}",
            {"n_final": 2 * n, "n_guesses": right + wrong, "n_right": right},
            float(self.bound(2 * n if self.both_sides else n, 0)),
        )

    def _counts(self, x: object, n: int, found: Found, rng: Rng) -> list[int]:
        """Count the guesses of x and of x' in n runs on one dataset."""
        blocks = (min(BLOCK, n - start) for start in range(0, n, BLOCK))
        counts = [found.rule.counts(self.run(x, each, rng, found.n_columns)) for each in blocks]
        return [sum(of_one) for of_one in zip((0, 0), *counts, strict=True)]


class PairTest(LabelTest):
    """Compare how often one event, a guess on one side, happens on either dataset."""

    both_sides = False

    def bound(self, right: ArrayLike, wrong: ArrayLike) -> NDArray[np.float64]:
        n = self.n_final
        return pair_bound(right, n, np.minimum(wrong, n), n, self.alpha, self.delta)

    def runs_on_x(self, rng: Rng) -> int:
        return self.n_final


class LocalTest(Method):
    """Compare two estimated densities, or frequencies, at the most revealing output."""

    def search(self, pair: Pair, rng: Rng) -> Found:
        """Find the output whose loss has the largest lower limit; the largest loss may be noise."""
        x, y = self.run_both(pair, self.n_search, rng)
        loss = estimate_privacy_loss(x, y)
        lower = loss.loss - stats.norm.isf(min(self.alpha, POINT_ALPHA)) * loss.standard_error
        k = int(np.argmax(np.where(loss.visible, lower, -np.inf)))
        sign = 1 if loss.log_ratio[k] >= 0 else -1
        rule = loss.points[k], bool(loss.is_atom[k]), sign
        return Found(max(float(lower[k]), 0.0), rule, ("atoms", "densities"), x.n_columns)

    def certify(self, pair: Pair, found: Found, rng: Rng) -> Outcome:
        """Estimate the loss there, in the same direction, on fresh runs, with a one-sided limit."""
        output, is_atom, sign = found.rule
        samples = Samples(*self.run_both(pair, self.n_final, rng, found.n_columns))
        if is_atom:
            fresh, kind = samples.at_value(output), "probability"
        else:
            point = np.reshape(output, (1, -1))
            fresh, kind = samples.at_points(point, exponent=FRESH_EXPONENT), "density"
        f_x, f_y = float(fresh.density_x[0]), float(fresh.density_y[0])
        loss = sign * math.log(f_x / f_y)
        lower = loss - float(stats.norm.isf(self.alpha) * fresh.standard_error[0])
        return Outcome(
            max(lower, 0.0),
            max(loss, 0.0),
            f"loss at output {show(output)}, blind below {kind} {fresh.floor:.3g}",
            {"n_final": 2 * self.n_final},
            math.log(max(f_x, f_y) / fresh.floor),
        )


class OneRunTest(Method):
    """Guess many coins, one for each record, after a single run."""

    def search(self, pair: Pair, rng: Rng) -> Found:
        """Choose, on one run, how many of the highest and of the lowest scores to guess."""
        coins, scores = self._run_once(pair, rng)
        scored = lines(scores[coins], scores[~coins])
        rules = [choose_rule(each, self._bound, len(coins) / 2, both_sides=True) for each in scored]
        best = max(rules, key=lambda rule: rule.value)
        return Found(best.value, (best, *best.counts(scores)), (best.name,))

    def certify(self, pair: Pair, found: Found, rng: Rng) -> Outcome:
        """Guess the coins of one fresh run; the number of guesses is already fixed."""
        rule, n_high, n_low = found.rule
        coins, scores = self._run_once(pair, rng)
        order = np.argsort(rule.score(scores), kind="stable")
        n, guesses = len(coins), n_high + n_low
        right = int(coins[order[n - n_high :]].sum() + (~coins[order[:n_low]]).sum())
        return Outcome(
            one_run_bound(n, guesses, right, self.alpha, self.delta),
            _loss(right, guesses - right),
            f"guess x for the {n_high} highest and x' for the {n_low} lowest {rule.name}",
            {"n_final": 1, "n_canaries": n, "n_guesses": guesses, "n_right": right},
            one_run_bound(n, n, n, self.alpha, self.delta),
        )

    def _bound(self, right: NDArray, wrong: NDArray) -> NDArray[np.float64]:
        """Bound epsilon without the allowance for a delta, to compare thresholds."""
        return label_bound(right, right + wrong, self.alpha)

    def _run_once(self, pair: Pair, rng: Rng) -> tuple[NDArray[np.bool_], Outputs]:
        """Flip a coin per record, run once, and return the coins and the scores."""
        x, y = np.asarray(pair[0]), np.asarray(pair[1])
        if x.shape != y.shape or x.ndim == 0:
            raise ValueError(
                "The 'pairs' parameter of audit_epsilon must hold two sequences of equally many "
                f"records for method='one-run'. Got shapes {x.shape} and {y.shape}."
            )
        coins = rng.random(len(x)) < 0.5
        chosen = coins.reshape((-1,) + (1,) * (x.ndim - 1))
        scores = np.asarray(self.mechanism(np.where(chosen, x, y), 1, rng), dtype=np.float64)
        if scores.shape != (1, len(x)) or np.isnan(scores).any():
            raise ValueError(
                f"The mechanism must return one score per record, of shape (1, {len(x)}), none of "
                f"them nan, for method='one-run'. Got an array of shape {scores.shape}."
            )
        return coins, as_outputs(scores[0])


METHODS: dict[str, type[LabelTest | LocalTest | OneRunTest]] = {
    "label": LabelTest,
    "pair": PairTest,
    "local": LocalTest,
    "one-run": OneRunTest,
}


def _loss(more: float, less: float) -> float:
    """Return the logarithm of a ratio of counts, of at least 1."""
    return max(0.0, math.log(more / less) if less else math.inf) if more > 0 else 0.0
