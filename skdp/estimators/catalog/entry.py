"""One entry of the catalog: all that is known of one class of estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skdp.core.types import Estimator, Values
from skdp.estimators.statistics import Statistic

Members = Iterable[tuple[str, Estimator]]


@dataclass(frozen=True)
class Entry:
    """All that is known of one class of estimators.

    A class with `attributes` is released by these, one with `members` member by member, and a tree
    by the values in its leaves. A reason in `refuse` says why a class is not released.
    """

    # How it is released: read by `parts`.

    # the fitted attributes to release; or ``attributes(estimator)`` names them, before a fit too
    attributes: tuple[str, ...] | Callable[[Estimator], tuple[str, ...]] | None = None
    # ``finish(released, public_fit)`` repairs noised attributes and derives others from them
    finish: Callable[[Estimator, Estimator], None] | None = None
    # ``align(values, public_fit)`` gives components the signs and the order of the public fit
    align: Callable[[Values, Estimator], Values] | None = None
    # ``read(fitted, public_fit)`` returns shorter forms of attributes, which `finish` expands
    read: Callable[[Estimator, Estimator], Values] | None = None
    # ``divisors(values, public, errors, public_fit)`` raises divisors that noise hides
    divisors: Callable[[Values, Values, Values, Estimator], Values] | None = None
    # fitted attributes that are public metadata: they must equal those of the public fit
    public: tuple[str, ...] = ()
    # attributes of the public fit that would mislead, since nothing released replaces them
    drop: tuple[str, ...] = ()
    # whether `read` takes more than the structure from the public fit
    anchored: bool = False
    # ``substitute(estimator, transforms)`` names the class in skdp.estimators.substitutes that
    # takes its place, if any
    substitute: Callable[[Estimator, bool], str | None] | None = None

    # What the user is told.

    # how many numbers are released: d features; k classes, outputs, components or clusters
    numbers: str = ""
    # methods that need more than is released
    unserved: tuple[str, ...] = ()
    # why the class, or by ``refuse(estimator)`` this configuration, cannot be released
    refuse: str | Callable[[Estimator], str | None] | None = None

    # What its sensitivity is known by.

    # the statistic that is released where the sensitivity is known on paper, or why there is none
    known: type[Statistic] | str | None = None

    # The members of a composition.

    # ``members(fitted)`` names the fitted members, in a fixed order
    members: Callable[[Estimator], Members] | None = None
    # ``structure(fitted)`` returns what else must be the same in all fits, as arrays or lists
    structure: Callable[[Estimator], object] | None = None
    # ``steps(estimator)`` lists the unfitted members through which the records pass
    steps: Callable[[Estimator], list] | None = None
    # whether it takes missing values, or strings, if all or if any of the steps do
    takes_if: Callable[[Iterable[bool]], bool] = all
    # ``transforms(owner, name, owner_transforms)`` says whether a member transforms for the next
    transforms: Callable[[Estimator, str, bool], bool] | None = None
    # whether `random_state` decides what a member is or sees: left open, it is set to one number
    seeded_structure: bool = False
    # whether members see records drawn by position, and are trees where none are given
    bags: bool = False
    # whether it passes weights on to its members, though its signature does not say so
    passes_weights: bool = False

    # What it does with records.

    # whether it is a tree or a forest, of which a LeafTarget releases the leaves
    tree: bool = False
    # whether ``cv=None`` means folds
    folds: bool = True
    # whether it leaves missing values missing
    passes_gaps: bool = False
    # whether it may learn from y; None where the tags of scikit-learn tell
    uses_response: bool | None = None
    # whether fitting changes nothing, though an older scikit-learn does not say so
    learns_nothing: bool = False
    # whether, once fitted, it transforms each record by itself and fails on none
    by_record: bool = False

    @property
    def depends_on_public_fit(self) -> bool:
        """Whether the released values depend on the values of the public fit."""
        return self.anchored or self.align is not None

    def names(self, estimator: Estimator) -> tuple[str, ...]:
        """Name the attributes to release of an estimator; none where `attributes` is None."""
        return self.attributes(estimator) if callable(self.attributes) else self.attributes or ()

    def reason(self, estimator: Estimator) -> str | None:
        """Return why an estimator cannot be released, None if it can."""
        return self.refuse(estimator) if callable(self.refuse) else self.refuse
