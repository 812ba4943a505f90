"""The warnings of the package."""

from __future__ import annotations


class ReproductionWarning(UserWarning):
    """A published number is reproduced as printed, although it is not what it claims to be.

    Raised by the functions of `skdp.risk` whose name starts with ``paper_``. Their values are for
    comparison with the publication; no guarantee is ever computed from them.
    """
