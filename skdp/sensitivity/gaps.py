"""Private gaps, which are allowed where the oracle's records have some."""

from __future__ import annotations

from skdp.core.checks import shorten
from skdp.core.plain import gaps_in
from skdp.core.types import Container


def check_gaps(X: Container, public: frozenset[int] | None) -> None:
    """Refuse gaps in other columns than public records have some in; None allows any.

    With a bound on paper they count as it says: there a refusal would tell of them.
    """
    if public is None:
        return
    others = sorted(gaps_in(X) - public)
    if others:
        names = getattr(X, "columns", None)
        columns = [place if names is None else names[place] for place in others]
        raise ValueError(
            f"X has missing entries in the columns {shorten(columns)}, and the oracle's records "
            "have none there. Fill them beforehand, or let the oracle yield some."
        )
