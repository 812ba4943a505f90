"""The tests of an audit: each chooses a rule in search runs, and certifies it on final runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.audit.certificates import label_bound, one_run_bound, pair_bound, resolution_limit
from skdp.audit.outputs import Outputs, as_outputs
from skdp.audit.privacy_loss import LossPoint, loss_at, most_revealing_point
from skdp.audit.rules import (
    Candidate,
    LineScore,
    Rule,
    Score,
    candidate_scores,
    label_rule,
    pair_rule,
)

Rng = np.random.Generator
Runs = Callable[[Any, int, Rng], ArrayLike | Outputs]  # runs(dataset, n, rng) returns n outputs
Pair = tuple[Any, Any]
Shape = tuple[int, ...]
_Ends = tuple[Score, int, int]  # how many of the highest and of the lowest scores to guess
BLOCK = 2**19
"""Final runs at a time: millions of rows need not be in memory together."""

POINT_ALPHA = 1e-4
"""Level at which outputs are compared in the search of the local method; there are many."""


@dataclass(frozen=True)
class Audited:
    """A mechanism to be audited, the numbers of runs, the level and the delta of the claim."""

    mechanism: Runs
    n_search: int
    n_final: int
    alpha: float
    delta: float

    def outputs(self, x: object, n: int, rng: Rng, shape: Shape | None = None) -> Outputs:
        """Run the mechanism, and insist on one output per run and one shape of all outputs."""
        outputs = as_outputs(self.mechanism(x, n, rng))
        if len(outputs) != n:
            raise ValueError(
                f"The mechanism must return n={n} outputs. Got an array of shape {outputs.shape}."
            )
        if shape not in (None, outputs.shape[1:]):
            raise ValueError(
                "The mechanism must return outputs of one shape on both datasets and in all runs. "
                f"Got shapes {shape} and {outputs.shape[1:]}. Pad the shorter outputs."
            )
        return outputs

    def both(
        self, pair: Pair, n: int, rng: Rng, shape: Shape | None = None
    ) -> tuple[Outputs, Outputs]:
        """Run the mechanism n times on each dataset of a pair."""
        x = self.outputs(pair[0], n, rng, shape)
        return x, self.outputs(pair[1], n, rng, x.shape[1:])

    def counts(self, x: object, n: int, rule: Rule, rng: Rng) -> tuple[int, int]:
        """Count the guesses of x and of x' in n runs on one dataset."""
        blocks = (min(BLOCK, n - start) for start in range(0, n, BLOCK))
        each = [rule.counts(self.outputs(x, block, rng, rule.shape)) for block in blocks]
        return sum(of_x for of_x, _ in each), sum(of_y for _, of_y in each)


class Outcome(NamedTuple):
    """Certificate of the final stage, as fields of the result."""

    lower_bound: float | NDArray[np.float64]
    estimate: float
    direction: str
    event: str
    candidates: tuple[str, ...]
    sizes: dict[str, int]
    resolution: float


def _search_rules(
    choose: Callable[..., Rule], audited: Audited, pair: Pair, rng: Rng
) -> tuple[float, Rule]:
    """Learn what suits the outputs, choose thresholds for each, and keep the best rule."""
    x, y = audited.both(pair, audited.n_search, rng)
    candidates = candidate_scores(x, y, seed=int(rng.integers(2**31)))
    rules = [choose(c, audited.alpha, audited.n_final, audited.delta) for c in candidates]
    best = max(rules, key=lambda rule: rule.value)
    names = dict.fromkeys(str(score).removeprefix("log ratio of ") for score, *_ in candidates)
    return best.value, replace(best, candidates=tuple(names), shape=x.shape[1:])


def _direction(for_x: object, for_y: object) -> str:
    """Name the dataset that there are guesses for."""
    return "both" if for_x and for_y else "x' over x" if for_y else "x over x'"


def _loss(more: float, less: float) -> float:
    """Return the logarithm of a ratio of counts, of at least 1."""
    return max(0.0, math.log(more / less) if less else math.inf) if more > 0 else 0.0


def _final_label(audited: Audited, pair: Pair, rule: Rule, rng: Rng) -> Outcome:
    """Guess the secret coin of 2 n_final runs."""
    # Independent fair coins, grouped by outcome: the runs are exchangeable.
    n_x = int(rng.binomial(2 * audited.n_final, 0.5))
    right_x, wrong_x = audited.counts(pair[0], n_x, rule, rng)
    wrong_y, right_y = audited.counts(pair[1], 2 * audited.n_final - n_x, rule, rng)
    right, guesses = right_x + right_y, right_x + right_y + wrong_x + wrong_y
    return Outcome(
        label_bound(right, guesses, audited.alpha),
        _loss(right, guesses - right),
        _direction(math.isfinite(rule.above), math.isfinite(rule.below)),
        f"guess {rule}",
        rule.candidates,
        {"n_final": 2 * audited.n_final, "n_guesses": guesses, "n_right": right},
        resolution_limit("label", audited.n_final, audited.alpha),
    )


def _final_pair(audited: Audited, pair: Pair, rule: Rule, rng: Rng) -> Outcome:
    """Count one event in n_final runs on either dataset."""
    n = audited.n_final
    side = 1 if math.isfinite(rule.below) else 0
    hits = [audited.counts(dataset, n, rule, rng)[side] for dataset in pair]
    more, less = hits[side], hits[1 - side]
    return Outcome(
        pair_bound(more, n, less, n, audited.alpha, audited.delta),
        _loss(more - audited.delta * n, less),
        _direction(math.isfinite(rule.above), math.isfinite(rule.below)),
        str(rule),
        rule.candidates,
        {"n_final": 2 * n, "n_hits_x": hits[0], "n_hits_x_prime": hits[1]},
        resolution_limit("pair", n, audited.alpha, audited.delta),
    )


def _search_local(audited: Audited, pair: Pair, rng: Rng) -> tuple[float, LossPoint]:
    """Find the point whose loss has the largest lower confidence limit."""
    x, y = audited.both(pair, audited.n_search, rng)
    point = most_revealing_point(x, y, confidence=1 - min(audited.alpha, POINT_ALPHA))
    return point.lower, point


def _final_local(audited: Audited, pair: Pair, point: LossPoint, rng: Rng) -> Outcome:
    """Estimate the loss at one point on fresh runs, with a one-sided limit."""
    x, y = audited.both(pair, audited.n_final, rng, np.shape(point.value))
    fresh = loss_at(point, x, y, confidence=1 - audited.alpha)
    return Outcome(
        fresh.lower,
        fresh.loss,
        _direction(point.sign > 0, point.sign < 0),
        f"loss at {fresh}",
        ("atoms", "densities"),
        {"n_final": 2 * audited.n_final},
        fresh.resolution,
    )


def _search_one_run(audited: Audited, pair: Pair, rng: Rng) -> tuple[float, _Ends]:
    """Choose, on one run, how many of the highest and of the lowest scores to guess."""
    coins, scores = _one_run(audited.mechanism, pair, rng)
    lines = (LineScore(1), LineScore(-1))
    scored = [Candidate(line, line(scores[coins]), line(scores[~coins])) for line in lines]
    rules = [label_rule(candidate, audited.alpha, len(coins) / 2) for candidate in scored]
    best = max(rules, key=lambda rule: rule.value)
    return best.value, (best.score, *best.counts(scores))


def _final_one_run(audited: Audited, pair: Pair, rule: _Ends, rng: Rng) -> Outcome:
    """Guess the coins of one fresh run; the number of guesses is already fixed."""
    score, n_high, n_low = rule
    coins, outputs = _one_run(audited.mechanism, pair, rng)
    order = np.argsort(score(outputs), kind="stable")
    n, guesses = len(coins), n_high + n_low
    right = int(coins[order[n - n_high :]].sum() + (~coins[order[:n_low]]).sum())
    return Outcome(
        one_run_bound(n, guesses, right, audited.alpha, audited.delta),
        _loss(right, guesses - right),
        _direction(n_high, n_low),
        f"guess x for the {n_high} highest and x' for the {n_low} lowest {score}",
        (str(score),),
        {"n_final": 1, "n_canaries": n, "n_guesses": guesses, "n_right": right},
        one_run_bound(n, n, n, audited.alpha, audited.delta),
    )


def _one_run(mechanism: Runs, pair: Pair, rng: Rng) -> tuple[NDArray[np.bool_], Outputs]:
    """Flip a coin per record, run once, and return the coins and the scores."""
    x, y = np.asarray(pair[0]), np.asarray(pair[1])
    if x.shape != y.shape or x.ndim == 0:
        raise ValueError(
            "The 'pairs' parameter of audit_epsilon must hold two sequences of equally many records"
            f" for method='one-run'. Got shapes {x.shape} and {y.shape}."
        )
    coins = rng.random(len(x)) < 0.5
    chosen = coins.reshape((-1,) + (1,) * (x.ndim - 1))
    scores = np.asarray(mechanism(np.where(chosen, x, y), 1, rng), dtype=np.float64)
    if scores.shape != (1, len(x)) or np.isnan(scores).any():
        raise ValueError(
            f"The mechanism must return one score per record, of shape (1, {len(x)}), none of them "
            f"nan, for method='one-run'. Got an array of shape {scores.shape}."
        )
    return coins, as_outputs(scores[0])


class Method(NamedTuple):
    """A search, which chooses a rule for a pair and values it, and the final runs by the rule."""

    search: Callable[[Audited, Pair, Rng], tuple[float, Any]]
    final: Callable[[Audited, Pair, Any, Rng], Outcome]


METHODS = {
    "label": Method(partial(_search_rules, label_rule), _final_label),
    "pair": Method(partial(_search_rules, pair_rule), _final_pair),
    "local": Method(_search_local, _final_local),
    "one-run": Method(_search_one_run, _final_one_run),
}
