"""Evaluate pilot pairs, from whose values and differences a public code is learned."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.streams import pilot_key
from skdp.sensitivity.execution import CHUNK_SIZE, Evaluate, run_chunk
from skdp.sensitivity.pairs import NoValueError, PairSource, within_rounding

# Pilot pairs are kept whole, so their number is limited, and so are their differences (256 MB) and
# values (as many). A chunk is a small part of that.
MAX_PILOT_PAIRS = 1000
MAX_PILOT_VALUES = 2**25
CHUNK_VALUES = 2**20
N_SHAKEN = 5  # pairs, each of which takes four evaluations; the majority decides


def pilot_pair(source: PairSource, pair: int) -> NDArray[np.float64] | None:
    """Return the first value of a pilot pair, raveled, and the whole difference, in two rows.

    Return None where the target fails or a number is not finite. A difference that rounding
    explains is set to zero, since a code would take the rounding of a constant for a scale.
    """
    try:
        value, other = source.values(*pilot_key(pair))
    except NoValueError:
        return None
    difference = np.where(within_rounding(value, other), 0.0, value - other)
    rows = np.array([value.ravel(), difference.ravel()])
    return rows if np.isfinite(rows).all() else None


def gather_pilots(
    source: PairSource,
    n_pairs: int,
    run: Callable[[Evaluate, range, int], Generator[Any]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values and differences of pilot pairs.

    `run` evaluates them in chunks. The first pair that has a value tells how many numbers it holds.
    """
    evaluate = partial(_pilot_pairs, source)
    probes = (run_chunk(evaluate, range(pair, pair + 1))[0] for pair in range(n_pairs))
    tried, first = next(
        ((pair, probe) for pair, probe in enumerate(probes) if probe is not None),
        (0, np.empty((2, 0))),
    )
    size = first.shape[1]
    if not size:
        return np.empty((0, size)), np.empty((0, size))
    rest = range(tried + 1, min(n_pairs, max(1, MAX_PILOT_VALUES // size)))
    kept = np.empty((2, 1 + len(rest), size))  # once: they may fill much of the memory
    kept[:, 0], n_kept = first, 1
    with closing(run(evaluate, rest, min(CHUNK_SIZE, 1 + CHUNK_VALUES // size))) as chunks:
        for each in chain.from_iterable(chunks):
            if each is not None and each.shape == first.shape:
                kept[:, n_kept] = each
                n_kept += 1
    values, differences = kept[:, :n_kept]
    return values, differences


def gather_shaken(source: PairSource, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a few pilot values of `size` numbers, and those of perturbed records."""
    evaluated = run_chunk(partial(_plain_and_shaken, source), range(N_SHAKEN))
    kept = [both for both in evaluated if {value.size for value in both} == {size}]
    plain, shaken = np.reshape(kept, (-1, 2, size)).swapaxes(0, 1)
    return plain, shaken


def _plain_and_shaken(source: PairSource, pairs: range) -> list[list[NDArray[np.float64]]]:
    rows = []
    for pair in pairs:
        with suppress(NoValueError):
            rows.append(
                [source.values(*pilot_key(pair), shake=shake)[0] for shake in (False, True)]
            )
    return rows


def _pilot_pairs(source: PairSource, pairs: range) -> list[NDArray[np.float64] | None]:
    return [pilot_pair(source, pair) for pair in pairs]
