"""Public codes: which few numbers get noise, and how they are decoded."""

from skdp.core.code import PublicCode
from skdp.core.geometry import Geometry

__all__ = ["Geometry", "PublicCode"]
