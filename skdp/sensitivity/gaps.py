"""Private gaps, which are allowed where the oracle's records have gaps too."""

from __future__ import annotations

from skdp.core.checks import shorten
from skdp.core.plain import gaps_in
from skdp.core.types import Container


def check_gaps(X: Container, public: frozenset[int] | None) -> None:
    """Refuse gaps in columns where the oracle's records have none.

    None allows any, as under a bound on paper, where a refusal would tell of private gaps.
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
