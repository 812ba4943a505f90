"""Seeds that can be reported."""

import operator
import secrets

import numpy as np


def reproducible_seed(rng: int | np.random.Generator | None) -> int:
    """Reduce a source of randomness to one integer that can be reported."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    return secrets.randbits(128) if rng is None else operator.index(rng)
