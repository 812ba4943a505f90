"""The tests of an audit: each chooses a rule in search runs, and certifies it on final runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skdp.audit.certificates import label_bound, pair_bound
from skdp.audit.outputs import Outputs, as_outputs
from skdp.audit.privacy_loss import Samples, estimate_privacy_loss
from skdp.audit.rules import Rule, candidate_scores, choose_rule

Rng = np.random.Generator
Runs = Callable[..., ArrayLike | Outputs]  # runs(dataset, n, rng) returns n outputs
Pair = tuple[object, object]
Outcome = dict[str, Any]  # of final runs, as fields of the result
Found = tuple[float, Callable[[Pair, Rng], Outcome]]  # the bound to expect, and what certifies it
BLOCK = 2**19  # final runs at a time: millions of rows need not be in memory together
POINT_ALPHA = 1e-4  # level of a comparison in the search of the local method; there are many
FRESH_EXPONENT = 1.15  # of ``h ~ n**(-1.15/5)``: less bias than the usual 1, a little noisier


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
        best, names = max(rules, key=lambda rule: rule.value), tuple(c.name for c in candidates)
        return best.value, partial(self.certify, best, names, x.n_columns)

    def certify(
        self, rule: Rule, names: tuple[str, ...], n_columns: int, pair: Pair, rng: Rng
    ) -> Outcome:
        """Count right and wrong guesses in final runs."""
        n, n_x, counts = self.n_final, self.runs_on_x(rng), np.zeros((2, 2), dtype=int)
        for count, x, n_runs in zip(counts, pair, (n_x, 2 * n - n_x), strict=True):
            for start in range(0, n_runs, BLOCK):
                count += rule.counts(self.run(x, min(BLOCK, n_runs - start), rng, n_columns))
        right, wrong = int(counts.trace()), int(counts.sum() - counts.trace())
        more = right - self.delta * n
        estimate = math.log(more / wrong) if wrong and more > wrong else 0.0
        return {
            "lower_bound": float(self.bound(right, wrong)),
            "estimate": estimate if wrong or more <= 0 else math.inf,
            "event": f"guess {rule}",
            "sizes": {"n_final": 2 * n, "n_guesses": right + wrong, "n_right": right},
            "candidates": names,
            "resolution": float(self.bound(2 * n if self.both_sides else n, 0)),
        }


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
        where = loss.points[k], bool(loss.is_atom[k]), sign, x.n_columns
        return max(float(lower[k]), 0.0), partial(self.certify, *where)

    def certify(
        self, output: object, is_atom: bool, sign: int, n_columns: int, pair: Pair, rng: Rng
    ) -> Outcome:
        """Estimate the loss there, in the same direction, on fresh runs, with a one-sided limit."""
        samples = Samples(*self.run_both(pair, self.n_final, rng, n_columns))
        if is_atom:
            fresh, kind = samples.at_value(output), "probability"
        else:
            points = np.array([output], dtype=np.float64)
            fresh, kind = samples.at_points(points, exponent=FRESH_EXPONENT), "density"
        f_x, f_y, floor = (float(f[0]) for f in (fresh.density_x, fresh.density_y, fresh.floor))
        loss, shown = sign * math.log(f_x / f_y), np.array2string(np.asarray(output), precision=4)
        lower = loss - float(stats.norm.isf(self.alpha) * fresh.standard_error[0])
        return {
            "lower_bound": max(lower, 0.0),
            "estimate": max(loss, 0.0),
            "event": f"loss at output {shown}, blind below {kind} {floor:.3g}",
            "sizes": {"n_final": 2 * self.n_final},
            "candidates": ("atoms", "densities"),
            "resolution": math.log(max(f_x, f_y) / floor),
        }


METHODS: dict[str, type[LabelTest | LocalTest]] = {
    "label": LabelTest,
    "pair": PairTest,
    "local": LocalTest,
}
