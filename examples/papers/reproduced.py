"""What the pages of this folder share: their size, and the table at their end."""

import math
import os
from itertools import zip_longest
from textwrap import wrap

from skdp import LaplaceMechanism, Mechanism
from skdp.codes import Geometry

FULL = os.environ.get("SKDP_PAPERS") == "full"  # `make papers`; else small enough for every build

WIDTHS = {"what": 25, "published": 19, "here": 18, "why different": 24}


def compare(*rows):
    """Print a table of what was published, what came out here, and why the two differ."""
    print("  ".join(title.ljust(width) for title, width in WIDTHS.items()).rstrip())
    for row in rows:
        print()
        cells = [wrap(cell, width) for cell, width in zip(row, WIDTHS.values(), strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            padded = (text.ljust(width) for text, width in zip(line, WIDTHS.values(), strict=True))
            print("  ".join(padded).rstrip())


class BernsteinMechanism(Mechanism):
    """Laplace noise on N numbers, calibrated to N times the sup norm of their change.

    That is a bound on the L1 norm, so the promise is that of `LaplaceMechanism`, with more noise.
    Aldà and Rubinstein, "The Bernstein Mechanism: Function Release under Differential Privacy",
    AAAI 2017.
    """

    geometry = Geometry(math.inf)

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def _laplace(self):
        return LaplaceMechanism(self.epsilon, code=None)

    def release(self, value, sensitivity, rng=None):
        l1_bound = math.nextafter(value.size * sensitivity, math.inf)
        return self._laplace().release(value, l1_bound, rng)

    def standard_errors(self, shape, sensitivity):
        return self._laplace().standard_errors(shape, math.prod(shape) * sensitivity)

    def noise_columns(self, shape, sensitivity):
        return self._laplace().noise_columns(shape, math.prod(shape) * sensitivity)

    def guarantee(self, gamma=0.0):
        return self._laplace().guarantee(gamma)
