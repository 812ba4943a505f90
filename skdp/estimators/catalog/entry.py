"""One entry of the catalog: all that is known of one class of estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from skdp.core.types import Estimator, Values
from skdp.estimators.statistics import Statistic

Members = Iterable[tuple[str, Estimator]]


class Substitute(NamedTuple):
    """A class that takes the place of another, whose fitted state scikit-learn keeps private.

    `name` is that of a class in `skdp.estimators.substitutes`; ``applies(estimator, transforms)``
    says whether it is needed; `entry` says how it is released, None as what it stands for.
    """

    name: str
    applies: Callable[[Estimator, bool], bool]
    entry: Entry | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of one class of estimators.

    Those with `attributes` are released by these, those with `members` member by member, and trees
    by the values in their leaves. A reason in `refuse` says why a class is not released.

    Parameters
    ----------
    attributes : callable or None, default=None
        ``attributes(estimator)`` names the fitted attributes to release. It may look at the
        parameters of the estimator, fitted or not.
    finish : callable or None, default=None
        ``finish(released, public_fit)`` repairs the noised attributes and recomputes those derived
        from them. It sees released values and the public fit only.
    align : callable or None, default=None
        ``align(values, public_fit)`` brings the values, a dict by name, into a canonical form: the
        signs and the order of components are those of the public fit.
    read : callable or None, default=None
        ``read(fitted, public_fit)`` returns those values, by name, that are not the attribute
        itself but a shorter form of it, which `finish` expands. It must not keep `fitted`.
    numbers : str, default=""
        How many numbers are released: d features; k classes, outputs, components or clusters.
    public : tuple of str, default=()
        Fitted attributes that are public metadata: they must equal those of the public fit.
    divisors : callable or None, default=None
        ``divisors(values, public, errors, public_fit)`` returns those released values by which the
        function divides, told from 0: values, those of the public fit and standard errors are dicts
        by name.
    drop : tuple of str, default=()
        Attributes of the public fit that nothing released replaces, and that would mislead.
    keep : tuple of str, default=()
        Attributes that describe records elsewhere, but belong to the function here.
    unserved : tuple of str, default=()
        Methods that need more than is released.
    anchored : bool, default=False
        Whether `read` takes more than the structure from the public fit.
    refuse : str, callable or None, default=None
        Why the class cannot be released, or ``refuse(estimator)``, which returns why this
        configuration cannot, or None.
    substitute : Substitute or None, default=None
        What takes its place wherever it is fitted.
    members : callable or None, default=None
        ``members(fitted)`` gives the name and the fitted object of each member, in a fixed order.
    structure : callable or None, default=None
        ``structure(fitted)`` gives what else must be the same in all fits, as arrays or lists.
    steps : callable or None, default=None
        ``steps(estimator)`` lists those members, unfitted, through which the records pass. None
        where they are the estimators among the parameters.
    takes_if : callable, default=all
        Takes a bool for each of the steps: whether it takes missing values, or strings. Returns
        whether the composition does.
    transforms : callable or None, default=None
        ``transforms(owner, name, owner_transforms)`` returns whether the member in the parameter of
        this name is to transform for what comes after it. None where all members predict.
    seeded_structure : bool, default=False
        Whether `random_state` decides what a member is or sees. Left open it is set to one number,
        so that public fit, pairs and private fit have the same members.
    bags : bool, default=False
        Whether members see records drawn by position, and are trees where none are given.
    tree : bool, default=False
        Whether it is a tree or a forest, of which a LeafTarget releases the leaves.
    folds : bool, default=True
        Whether ``cv=None`` means folds.
    passes_gaps : bool, default=False
        Whether it leaves missing values missing.
    passes_weights : bool, default=False
        Whether it passes weights on to its members, though its signature does not say so.
    uses_response : bool or None, default=None
        Whether it may learn from y; None where the tags of scikit-learn tell.
    one_stream : bool, default=False
        Whether a fit reads one random stream from its start to its end, so that a generator just
        seeded serves it as well as the seed itself.
    learns_nothing : bool, default=False
        Whether fitting changes nothing, though an older scikit-learn does not say so.
    by_record : bool, default=False
        Whether, once fitted, it transforms each record by itself and fails on none.
    known : type, str or None, default=None
        The statistic that is released where the sensitivity is to be known on paper, or why there
        is none.
    """

    attributes: Callable[[Estimator], tuple[str, ...]] | None = None
    finish: Callable[[Estimator, Estimator], None] | None = None
    align: Callable[[Values, Estimator], Values] | None = None
    read: Callable[[Estimator, Estimator], Values] | None = None
    numbers: str = ""
    public: tuple[str, ...] = ()
    divisors: Callable[[Values, Values, Values, Estimator], Values] | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    anchored: bool = False
    refuse: str | Callable[[Estimator], str | None] | None = None
    substitute: Substitute | None = None
    members: Callable[[Estimator], Members] | None = None
    structure: Callable[[Estimator], object] | None = None
    steps: Callable[[Estimator], list] | None = None
    takes_if: Callable[[Iterable[bool]], bool] = all
    transforms: Callable[[Estimator, str, bool], bool] | None = None
    seeded_structure: bool = False
    bags: bool = False
    tree: bool = False
    folds: bool = True
    passes_gaps: bool = False
    passes_weights: bool = False
    uses_response: bool | None = None
    one_stream: bool = False
    learns_nothing: bool = False
    by_record: bool = False
    known: type[Statistic] | str | None = None

    @property
    def depends_on_public_fit(self) -> bool:
        """Whether the released values depend on the values of the public fit."""
        return self.anchored or self.align is not None

    def names(self, estimator: Estimator) -> tuple[str, ...]:
        """Name the attributes to release of an estimator; none where `attributes` is None."""
        return () if self.attributes is None else self.attributes(estimator)

    def reason(self, estimator: Estimator) -> str | None:
        """Return why an estimator cannot be released, None if it can."""
        return self.refuse(estimator) if callable(self.refuse) else self.refuse


@dataclass(frozen=True)
class Always:
    """The same names whatever the configuration."""

    names: tuple[str, ...]

    def __call__(self, estimator: Estimator) -> tuple[str, ...]:
        """Return the names."""
        return self.names


def always(*names: str) -> Always:
    """Release the same attributes whatever the configuration."""
    return Always(names)
