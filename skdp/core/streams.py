"""Random streams of the sampling, each of which depends on the seed and on a spawn key only."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.random import Generator, SeedSequence

from skdp.core.checks import check_rules, is_whole, shown
from skdp.core.types import Seed

SpawnKey = tuple[int, ...]

# Every stream of public records, by its spawn key. Streams under different keys are independent,
# and no two rows share a key, so pilots, calibrating pairs and the public fit are independent.
#
#   (i,)                   pair i, or one of each stratum, which calibrate
#   (i, 2)                 pilot pair i, from which a code is learned
#   (b, 3)                 block b of pairs of two records, which calibrate
#   (0, 1, a)              public dataset a < 2^31 - 1, such as that of the public fit
#   (0, 1, 2^31 - 1)       the records at which predictions are read
#   (0, 1, 2^31)           the public dataset on which the output is examined
#   (0, 1, 2^31 + 1 + t)   trial t of an oracle, before it is used
#   (1, 1, i)              pair i of an audit
#   (2, 1)                 rules, pilots and permutation of aggregated blocks
#   (3, 1)                 draws of released class tables
#   (i, 4)                 public dataset i, on which a release is simulated
#   (4, 1, d)              public dataset d of those that make the ranges of columns
#   (5, 1)                 the records that stand in for far ones, under the seed of an evaluation
#   (t, 5)                 made-up task t, on which a release is simulated
ANCHOR_DATASET = 2**31 - 1
OUTPUT_DATASET = 2**31
FIRST_TRIAL = 2**31 + 1
AUDIT = (1, 1)
AGGREGATE = (2, 1)
TABLES = (3, 1)
STAND_INS = (5, 1)
PILOT, BLOCK = 2, 3  # these stand after the number of the pair, and of the block


def public_key(dataset: int) -> SpawnKey:
    """Return the key of a public dataset."""
    return (0, 1, dataset)


def score_key(dataset: int) -> SpawnKey:
    """Return the key of a public dataset on which a release is simulated."""
    return (dataset, 4)


def ranges_key(dataset: int) -> SpawnKey:
    """Return the key of a public dataset that makes the ranges of columns."""
    return (4, 1, dataset)


def task_key(task: int) -> SpawnKey:
    """Return the key of a made-up task on which a release is simulated."""
    return (task, 5)


def streams(seed: int, key: SpawnKey) -> tuple[Generator, int]:
    """Return the generator of the records, and a seed in [0, 2^31) for the target."""
    rng = np.random.default_rng(SeedSequence(seed, spawn_key=key))
    return rng, int(rng.integers(2**31))


def public_seed(source: Seed, name: str, owner: str) -> int:
    """Reduce a source of randomness to one integer that can be reported."""
    if is_whole(source):
        check_rules(owner, **{name: (source, source >= 0, "not be negative")})
        return int(source)
    if source is None:
        return secrets.randbits(128)
    if hasattr(source, "bytes"):
        return int.from_bytes(source.bytes(16), "little")
    raise ValueError(
        f"The {name!r} parameter of {owner} must be None, an integer, a numpy Generator or a "
        f"RandomState. Got {shown(source)}."
    )
