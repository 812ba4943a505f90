"""Random streams of the sampling: their keys, and their bits."""

import numpy as np
import pytest

from skdp.core.streams import (
    AUDIT,
    OUTPUT_DATASET,
    block_key,
    pair_key,
    pilot_key,
    public_key,
    streams,
    trial_key,
)

KINDS = (pair_key, pilot_key, block_key, public_key, trial_key)


def test_no_two_purposes_share_a_stream():
    """What a seed gives may not change either, so the keys themselves are frozen."""
    keys = [kind(i) for kind in KINDS for i in range(100)]
    keys += [public_key(OUTPUT_DATASET), *((*AUDIT, i) for i in range(100))]
    assert len(set(keys)) == len(keys)
    assert [kind(5) for kind in KINDS] == [(5,), (5, 2), (5, 3), (0, 1, 5), (0, 1, 2**31 + 6)]
    assert (public_key(OUTPUT_DATASET), AUDIT) == ((0, 1, 2**31), (1, 1))


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1, 2**128 + 3])
def test_streams_are_those_of_numpy(seed):
    """Anybody can draw the records of a pair again, from the documented key."""
    rng, target_seed = streams(seed, pair_key(5))
    expected = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(5,)))
    assert target_seed == expected.integers(2**31)
    assert rng.random() == expected.random()
