"""One entry of the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """How one kind of estimator is released.

    Parameters
    ----------
    attributes : callable
        ``attributes(estimator)`` names the fitted attributes to release. It may look at the
        parameters of the estimator, fitted or not.
    finish : callable or None, default=None
        ``finish(released, twin)`` repairs the noised attributes and recomputes those derived from
        them. It sees released values and the public twin only.
    align : callable or None, default=None
        ``align(values, twin)`` brings the values, a dict by name, into a canonical form: the signs
        and the order of components are those of the twin.
    read : callable or None, default=None
        ``read(fitted, twin)`` returns those values, by name, that are not the attribute itself
        but a shorter form of it, which `finish` expands. It must not keep `fitted`.
    numbers : str, default=""
        How many numbers are released: d features; k classes, outputs, components or clusters.
    public : tuple of str, default=()
        Fitted attributes that are public metadata: they must equal those of the twin.
    drop : tuple of str, default=()
        Attributes of the twin that nothing released replaces, and that would mislead.
    keep : tuple of str, default=()
        Attributes that describe records elsewhere, but belong to the function here.
    refuse : callable or None, default=None
        ``refuse(estimator)`` returns why this configuration cannot be released, or None.
    unserved : tuple of str, default=()
        Methods that need more than is released.
    anchored : bool, default=False
        Whether `read` takes more than the structure from the twin.
    """

    attributes: Callable[[Any], tuple[str, ...]]
    finish: Callable[[Any, Any], None] | None = None
    align: Callable[[dict[str, Any], Any], dict[str, Any]] | None = None
    read: Callable[[Any, Any], dict[str, Any]] | None = None
    numbers: str = ""
    public: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    refuse: Callable[[Any], str | None] | None = None
    unserved: tuple[str, ...] = ()
    anchored: bool = False

    @property
    def depends_on_twin(self) -> bool:
        """Whether the released values depend on the values of the twin."""
        return self.anchored or self.align is not None


@dataclass(frozen=True)
class Always:
    """The same names whatever the configuration."""

    names: tuple[str, ...]

    def __call__(self, estimator: Any) -> tuple[str, ...]:
        """Return the names."""
        return self.names


def always(*names: str) -> Always:
    """Release the same attributes whatever the configuration."""
    return Always(names)
