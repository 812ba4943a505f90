"""Entries of the catalog: how a class is released, and how it treats records and members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Estimator, Values
from skdp.estimators.known.statistics import Statistic

Members = Iterable[tuple[str, Estimator]]


@dataclass(frozen=True, kw_only=True)
class Traits:
    """How a class, or one that derives from it, treats records and members."""

    # whether it is a tree or a forest whose leaves are released
    tree: bool = False
    # whether it leaves missing values missing
    passes_gaps: bool = False
    # whether it may learn from y; None where the tags of scikit-learn tell
    uses_response: bool | None = None
    # whether fitting changes nothing, though an older scikit-learn does not say so
    learns_nothing: bool = False
    # whether it has a parameter `classes`, so that a fit may lack a label
    lists_labels: bool = False
    # whether, once fitted, it transforms or predicts each record by itself and keeps nothing, if
    # its members and functions do
    by_record: bool = False

    # ``members(fitted)`` names the fitted members of a composition, in a fixed order
    members: Callable[[Estimator], Members] | None = None
    # ``structure(fitted)`` returns what else must be the same in all fits, as arrays or lists
    structure: Callable[[Estimator], object] | None = None
    # ``steps(estimator)`` lists the unfitted members through which the records pass
    steps: Callable[[Estimator], list] | None = None
    # whether it takes missing values, or strings, if all or if any of the steps do
    takes_if: Callable[[Iterable[bool]], bool] = all
    # ``transforms(owner, name, owner_transforms)`` says whether a member transforms for the next
    transforms: Callable[[Estimator, str, bool], bool] | None = None
    # whether it passes weights on to its members, though its signature does not say so
    passes_weights: bool = False


@dataclass(frozen=True)
class Entry(Traits):
    """How exactly one class is released, or why it is not."""

    # the fitted attributes to release, as "mean_ if with_mean", "mean_ if not centered" or
    # ``attributes(estimator)`` names them, before a fit too
    attributes: tuple[str, ...] | Callable[[Estimator], tuple[str, ...]] | None = None
    # ``finish(released, public_fit)`` repairs noised attributes and derives others from them
    finish: Callable[[Estimator, Estimator], None] | None = None
    # ``align(values, public_fit)`` gives components the signs and the order of the public fit
    align: Callable[[Values, Estimator], Values] | None = None
    # ``read(fitted, public_fit)`` returns shorter forms of attributes, which `finish` expands
    read: Callable[[Estimator, Estimator], Values] | None = None
    # ``rule(values, public_values)`` brings a released attribute back into its range
    repairs: Mapping[str, Callable[..., NDArray]] = field(default_factory=dict)
    # ``rule(values, public_values, errors, public_fit)`` raises a divisor, or takes public
    # numbers, where noise hides them
    divisors: Mapping[str, Callable[..., NDArray]] = field(default_factory=dict)
    # whether they are means over the records, or smooth functions of such means
    of_means: bool = False
    # fitted attributes that are public metadata: they must equal those of the public fit
    public: tuple[str, ...] = ()
    # attributes of the public fit, separated by spaces, that would mislead: nothing replaces them
    misleading: str = ""
    # how many numbers are released: d features; k classes, outputs, components or clusters
    numbers: str = ""
    # methods that need more than is released
    unserved: tuple[str, ...] = ()
    # why the class, or by ``refuse(estimator)`` this configuration, cannot be released
    refuse: str | Callable[[Estimator], str | None] | None = None
    # the statistic that is released where the sensitivity is known on paper, or why there is none
    known: Callable[..., Statistic] | str | None = None

    @property
    def drop(self) -> frozenset[str]:
        """Attributes of the public fit that would mislead."""
        return frozenset(self.misleading.split())

    def names(self, estimator: Estimator) -> tuple[str, ...]:
        """Name the attributes to release of an estimator; none where `attributes` is None."""
        if callable(self.attributes):
            return self.attributes(estimator)
        found = (name_if(each, estimator) for each in self.attributes or ())
        return tuple(name for name in found if name)

    def reason(self, estimator: Estimator) -> str | None:
        """Return why an estimator cannot be released, None if it can."""
        return self.refuse(estimator) if callable(self.refuse) else self.refuse


def name_if(conditional: str, estimator: object) -> str:
    """Return the name in "name if parameter", or "name if not parameter", where it holds, or ""."""
    name, _, condition = conditional.partition(" if ")
    value = getattr(estimator, condition.removeprefix("not "), True) if condition else True
    is_set = np.ndim(value) > 0 or bool(value)
    return name if is_set != condition.startswith("not ") else ""


def by_class(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Give each class its entry, where a key is a class or a module followed by names in it."""
    found: dict[str, Entry] = {}
    for key, entry in entries.items():
        module, *names = key.split()
        found |= dict.fromkeys([f"{module}.{name}" for name in names] or [module], entry)
    return found
