"""Random streams of the sampling: their keys, and their bits."""

import numpy as np
import pytest

from skdp.core.streams import (
    AGGREGATE,
    AUDIT,
    BLOCK,
    FIRST_TRIAL,
    OUTPUT_DATASET,
    PILOT,
    public_key,
    score_key,
    streams,
    task_key,
)


def keys_of(i):
    """Keys of pair, pilot, block, public dataset, trial and simulated dataset i."""
    return [
        (i,),
        (i, PILOT),
        (i, BLOCK),
        public_key(i),
        public_key(FIRST_TRIAL + i),
        score_key(i),
        task_key(i),
    ]


def test_no_two_purposes_share_a_stream():
    """What a seed gives may not change either, so the keys themselves are frozen."""
    keys = [key for i in range(100) for key in keys_of(i)]
    keys += [public_key(OUTPUT_DATASET), AGGREGATE, *((*AUDIT, i) for i in range(100))]
    assert len(set(keys)) == len(keys)
    assert keys_of(5) == [(5,), (5, 2), (5, 3), (0, 1, 5), (0, 1, 2**31 + 6), (5, 4), (5, 5)]
    assert (public_key(OUTPUT_DATASET), AUDIT, AGGREGATE) == ((0, 1, 2**31), (1, 1), (2, 1))


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1, 2**128 + 3])
def test_streams_are_those_of_numpy(seed):
    """Anybody can draw the records of a pair again, from the documented key."""
    rng, target_seed = streams(seed, (5,))
    expected = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(5,)))
    assert target_seed == expected.integers(2**31)
    assert rng.random() == expected.random()
