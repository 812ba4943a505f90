"""What every kind of sensitivity has in common."""

from __future__ import annotations

from typing import Any

from skdp.core.geometry import Geometry


def in_basis_of(geometry: Geometry, mechanism: Any) -> Any:
    """Return a mechanism in the basis of a sensitivity, where it asks for any or for its kind."""
    if isinstance(mechanism.basis, str) and mechanism.basis in ("auto", geometry.basis.kind):
        return mechanism.with_geometry(geometry)
    return mechanism
