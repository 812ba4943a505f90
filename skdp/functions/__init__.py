"""Functions that are released as a whole, and targets that are sums over the records."""

from skdp.functions.additive import AdditiveTarget
from skdp.functions.lattice import BernsteinTarget
from skdp.functions.released import ReleasedClassifier, ReleasedRegressor
from skdp.functions.released_density import ReleasedDensity

__all__ = [
    "AdditiveTarget",
    "BernsteinTarget",
    "ReleasedClassifier",
    "ReleasedDensity",
    "ReleasedRegressor",
]
