"""PrivacyAccountant: what all releases of some data may cost together, and have cost."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Self
from weakref import WeakValueDictionary

from skdp.accounting.in_force import accountants_in_force, put_in_force
from skdp.accounting.ledger import COLUMNS, MEMORY, Ledger, lock
from skdp.accounting.opened import remember
from skdp.accounting.parts import part_in_force, put_in_part
from skdp.accounting.spend import Spend, estimator_first, short_label
from skdp.accounting.sums import Rehearsal, Sums, numbers
from skdp.accounting.tally import BudgetTotal, Limits, Tally, check_limits
from skdp.core.checks import LONGEST, check_count, shorten, shown, warn
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.exceptions import LedgerError

_reopened: WeakValueDictionary[tuple, PrivacyAccountant] = WeakValueDictionary()


class PrivacyAccountant:
    """A budget for all releases of some private data, kept in a file.

    Each release is a row of the ledger, on the disk before private data is looked at; one that
    would exceed a limit is refused. Whoever has the path shares the budget: clones, pickles and
    copies of an accountant, threads, and the processes of this machine.

    Parameters
    ----------
    path : str or path-like
        The ledger, made if it does not exist; ":memory:" is one that ends with this process. It
        must be on a disk of this machine, not on a network drive.
    epsilon : float in (0, inf]
        Limit of the total epsilon.
    delta : float in [0, 1], default=0.0
        Limit of the total delta.
    gamma : float in [0, 1] or None, default=None
        Limit of the total gamma, jointly over pair and samplers: an estimate with a confidence c
        counts as ``1 - c (1 - gamma)``. None is no limit.
    slack : float in [0, delta], default=0.0
        Part of `delta` that is kept back, so that many small releases may be composed by more than
        the sum of their epsilons: see the user guide. The deltas of the releases then share the
        rest.
    timeout : float of at least 0, default=60.0
        Seconds to wait while another process writes.

    Raises
    ------
    ValueError
        If a limit is out of range.
    LedgerError
        If there is a ledger with other limits, or a file that is not a whole ledger.

    See Also
    --------
    default_accountant : The one that counts where none was given.

    Notes
    -----
    Limits hold whatever made the analyst choose the next epsilon: they are checked by filters,
    basic [1]_ and, with a `slack`, fully adaptive advanced composition [2]_.

    References
    ----------
    .. [1] Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and Filters: Pay-as-you-Go
       Composition", NeurIPS 2016.
    .. [2] Whitehouse, Ramdas, Rogers and Wu, "Fully-Adaptive Composition in Differential Privacy",
       ICML 2023.

    Examples
    --------
    >>> from skdp import BudgetExceededError, PrivacyGuarantee
    >>> from skdp.accounting import PrivacyAccountant
    >>> ledger = PrivacyAccountant(":memory:", epsilon=3.0)
    >>> ledger.spend(PrivacyGuarantee(epsilon=2.0), label="mean income")
    >>> ledger.remaining(10)
    0.1
    >>> try:
    ...     ledger.spend(PrivacyGuarantee(epsilon=2.0))
    ... except BudgetExceededError as error:
    ...     print(error.left)
    1.0
    """

    _label: str | None = None
    _label_came_along = False
    """Whether the label is of the block in which this was pickled; one that is open goes before."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | None = None,
        slack: float = 0.0,
        timeout: float = 60.0,
    ):
        limits = check_limits(epsilon, delta, gamma, slack)
        self._ledger = Ledger(os.fspath(path), timeout, limits)
        self._sums = Sums(self._ledger)
        self._remember()

    @classmethod
    def _of(cls, sums: Sums) -> Self:
        self = cls.__new__(cls)
        self._ledger, self._sums = sums.ledger, sums
        return self

    def _remember(self) -> None:
        """Let releases that are charged to no budget be told of this one."""
        if self.is_kept:
            remember(self._key, self)

    @property
    def _key(self) -> object:
        """What accountants of the same ledger have in common."""
        return id(self._ledger) if self.path == MEMORY else (self.path, self._ledger.identity)

    def _check_writable(self) -> None:
        if self._ledger.read_only:
            raise TypeError(
                f"The ledger {self.path!r} was opened to be read. To spend from it, make a "
                "PrivacyAccountant with its limits."
            )

    def _labeled_here(self) -> PrivacyAccountant:
        """Return this one with the label of the block, if that is of the same ledger."""
        return self._labeled(self._label_here())

    def _label_here(self) -> str | None:
        """Return its own label, or that of a block of the same ledger."""
        if self._label is None or self._label_came_along:
            with suppress(LedgerError):  # which block it is cannot be told, and need not be
                own = (each for each in accountants_in_force() if each._key == self._key)
                if (given := next(own, None)) is not None:
                    return given._label
        return None if self._label_came_along else self._label

    def _labeled(self, label: str | None) -> Self:
        """Return this one, or one of the same ledger that labels its rows."""
        if label is None:
            return self
        named = self._of(self._sums)
        named._label = label
        return named

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = 60.0) -> PrivacyAccountant:
        """Open an existing ledger to read it.

        Parameters
        ----------
        path : str or path-like
            The ledger.
        timeout : float of at least 0, default=60.0
            Seconds to wait while another process writes.

        Returns
        -------
        PrivacyAccountant
            With the limits of the file; it refuses to spend.

        Raises
        ------
        LedgerError
            If there is no whole ledger.
        """
        accountant = cls._of(Sums(Ledger(os.fspath(path), timeout, None)))
        accountant._remember()
        return accountant

    @property
    def is_kept(self) -> bool:
        """Whether it is in a file or has a limit, and not there only to add up for a while."""
        return self.path != MEMORY or math.isfinite(self.limits["epsilon"] or 0.0)

    @property
    def path(self) -> str:
        """Where the ledger is."""
        return self._ledger.path

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits of epsilon, delta and gamma, and the slack."""
        return dict(vars(self._ledger.limits))

    def spend(
        self,
        guarantee: PrivacyGuarantee,
        *,
        law: NoiseLaw | None = None,
        n_releases: int = 1,
        composed_at: float | None = None,
        n_samples: int | None = None,
        oracle: str | None = None,
        sensitivity_key: str | None = None,
        plan_key: str | None = None,
        label: str | None = None,
    ) -> None:
        """Count a release, before it is made.

        When this returns, the row is on the disk. If it raises, private data must not be looked
        at; the row may be there, but nothing is counted too little.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What the release will promise.
        law : NoiseLaw or None, default=None
            The law of its noise; None if no more is known than the guarantee.
        n_releases : int of at least 1, default=1
            More than one for a series of equal releases that is fixed in advance and counted as a
            whole. Their targets may hang on earlier outcomes; number, epsilons and noise may not.
        composed_at : float in [0, 1) or None, default=None
            Delta at which such a series is composed by the laws of its noise, which costs less than
            its releases one by one. None takes their sum.
        n_samples : int or None, default=None
            Number of private records; None takes that of the guarantee.
        oracle : str or None, default=None
            Description of the oracle; None takes that of the guarantee.
        sensitivity_key : str or None, default=None
            What the sensitivity estimate is known by. Its gamma counts for each release, the doubt
            that its confidence leaves once for each key. None is an estimate of its own, for each
            release.
        plan_key : str or None, default=None
            What the plan of the release is known by.
        label : str or None, default=None
            What is released, in public words.

        Raises
        ------
        BudgetExceededError
            If the release would exceed a limit.
        LedgerError
            If the ledger cannot be written.
        TypeError
            If `guarantee` is no guarantee.
        ValueError
            If `law` does not belong to it, `composed_at` is below the delta of the releases, or the
            ledger is for other neighboring datasets.

        Examples
        --------
        >>> from skdp import PrivacyGuarantee
        >>> from skdp.accounting import NoiseLaw, PrivacyAccountant
        >>> ledger = PrivacyAccountant(":memory:", epsilon=5.0, delta=1e-5)
        >>> each, law = PrivacyGuarantee(epsilon=0.1), NoiseLaw("laplace", 0.1)
        >>> ledger.spend(each, law=law, n_releases=100, composed_at=1e-5)
        >>> print(f"{ledger.total().epsilon:.2f}")
        4.22
        """
        owner = "PrivacyAccountant.spend"
        self._check_writable()
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(
                f"The 'guarantee' parameter of {owner} must be a PrivacyGuarantee, such as that of "
                "a release, or for what was spent elsewhere PrivacyGuarantee(epsilon=..., "
                f"delta=..., gamma=...). Got {shown(guarantee)}."
            )
        n_releases = check_count("n_releases", n_releases, owner)
        if composed_at is not None and not 0 <= composed_at < 1:
            raise ValueError(
                f"The 'composed_at' parameter of {owner} must be in [0, 1). Got "
                f"{shown(composed_at)}."
            )
        partition, part = part_in_force(self._ledger.identity)
        block = self._labeled_here()._label
        if block is not None:
            label = ": ".join(filter(None, (block, estimator_first(label or ""))))
        spend = Spend.of(
            guarantee,
            law,
            n_releases,
            n_samples=n_samples,
            oracle=oracle,
            sensitivity_key=sensitivity_key,
            plan_key=plan_key,
            label=label,
            partition=partition,
            part=part,
        )
        if composed_at is not None and n_releases > 1:
            together = Tally().add(spend).fixed_total(self._ledger.limits, composed_at)
            spend = replace(spend, epsilon=together.epsilon, delta=together.delta)
        self._sums.commit(spend, guarantee)

    def rehearse(self, *spends: Mapping[str, Any]) -> None:
        """Refuse releases that the budget does not allow together, before the first is made.

        Nothing is spent and nothing is kept free: another process may spend in between.

        Parameters
        ----------
        *spends : mapping of str to object
            For each release, in their order, the parameters of :meth:`spend`.

        Raises
        ------
        BudgetExceededError
            If they would exceed a limit together. Its `spent` is what was spent before them.
        TypeError, ValueError
            As :meth:`spend`.

        Examples
        --------
        >>> from skdp import PrivacyGuarantee
        >>> from skdp.accounting import PrivacyAccountant
        >>> ledger = PrivacyAccountant(":memory:", epsilon=1.0)
        >>> half = {"guarantee": PrivacyGuarantee(epsilon=0.5)}
        >>> ledger.rehearse(half, half)
        >>> ledger.total().epsilon
        0.0
        """
        rehearsal = Rehearsal(self._sums)
        trial = self._of(rehearsal)
        for spend in spends:
            trial.spend(**spend)
        rehearsal.check()

    def total(
        self, *, delta: float | None = None, fixed: bool = False, label: str | None = None
    ) -> BudgetTotal:
        """Return what all releases promise together.

        Parameters
        ----------
        delta : float in [0, 1) or None, default=None
            Delta at which fixed releases are composed; None takes the limit of delta, or that of
            the releases if there is none.
        fixed : bool, default=False
            Whether no epsilon was chosen by the outcome of an earlier release, which nobody checks.
            The total is then the least that basic, advanced and numerical composition of the laws
            give. Otherwise it is the sum or, where that is above the limit, the limit itself.
        label : str or None, default=None
            Of which block of :meth:`as_default`, such as "Monday", or release; None is all. It is
            what these promise by themselves. There is a warning if the ledger has none of them.

        Returns
        -------
        BudgetTotal
            With the name of the composition that gave it.

        Raises
        ------
        ValueError
            If `delta` is out of range, or goes with a total that is not fixed.
        TypeError
            If `label` is no string.
        """
        if delta is not None and not (fixed and 0 <= delta < 1):
            raise ValueError(
                "The 'delta' parameter of PrivacyAccountant.total must be in [0, 1), and goes with "
                f"fixed=True. Got {shown(delta)}."
            )
        tally = self._sums.current() if label is None else self._labeled_alike(label)
        limits = self._ledger.limits
        return tally.fixed_total(limits, delta) if fixed else tally.total(limits)

    def _labeled_alike(self, label: str) -> Tally:
        """Add up the rows of a block or of a release."""
        if not isinstance(label, str):
            raise TypeError(
                "The 'label' parameter of PrivacyAccountant.total must be a string or None. "
                f"Got {shown(label)}."
            )
        tally, others = Tally(), set()
        for _, spend in self._ledger.rows():
            if f": {label}: " in f": {spend.label}: ":
                tally.add(spend)
            else:
                others.add((spend.label or "").partition(": ")[0])
        if not tally.n_releases:
            warn(
                f"The ledger {self.path!r} has no release with the label {label!r}. Its labels "
                f"begin with {shorten(sorted(filter(None, others)))}."
            )
        return tally

    def remaining(self, n_releases: int = 1) -> float:
        """Return the largest epsilon that each of so many further releases may have.

        Parameters
        ----------
        n_releases : int of at least 1, default=1
            How many, each with delta = 0 and no gamma; within a block of :meth:`parallel` of its
            part.

        Returns
        -------
        float of at least 0
            They may be spent one by one.

        Raises
        ------
        ValueError
            If a generator or coroutine that opened a block of `parallel` waits, as for a release.
        """
        check_count("n_releases", n_releases, "PrivacyAccountant.remaining")
        seen = self._sums.current().seen_by(*part_in_force(self._ledger.identity))
        return self._sums.left(n_releases, seen)

    def rows(self) -> list[dict[str, object]]:
        """Return the releases as plain values.

        Returns
        -------
        list of dict
            One for each row of the ledger, in the order in which they were spent.
        """
        return [vars(spend) for _, spend in self._ledger.rows()]

    def to_frame(self) -> Any:
        """Return the releases as a data frame.

        Returns
        -------
        pandas.DataFrame
            A row for each row of the ledger. A long label is cut as on the command line; `rows`
            has the whole.
        """
        import pandas as pd

        first = ["label", "epsilon", "delta", "gamma", "n_releases", "partition", "part"]
        frame = pd.DataFrame(self.rows(), columns=[*dict.fromkeys([*first, *COLUMNS])])
        return frame.assign(label=frame["label"].map(short_label, na_action="ignore"))

    @contextmanager
    def as_default(self, label: str | None = None) -> Iterator[Self]:
        """Let this accountant count all releases of a block that are given no other one.

        Other threads and worker processes count here too while the block lasts; where blocks of
        several accountants are open in different threads, they must be given theirs. A process
        knows the blocks of the one that started it after skdp was imported there, by a file in
        TMPDIR. If that is deleted while the block lasts, its end warns that workers may have
        counted nowhere. A `PrivateEstimator` or a plan without an accountant that is pickled in the
        block takes this one along, wherever it is fitted or executed then; a copy does not.

        Parameters
        ----------
        label : str or None, default=None
            What the rows of the block are called, in public words, before what was released: such
            as "Monday"; also of releases that are given an accountant of the same ledger. A block
            within another of the ledger goes by both labels.

        Yields
        ------
        PrivacyAccountant
            This one, or one of the same ledger that labels.

        Raises
        ------
        ValueError
            If the label is no string, or not of one line of at most 80 characters.
        """
        fits = isinstance(label, str) and label.isprintable() and len(label) <= LONGEST
        if not (label is None or fits):
            raise ValueError(
                "The 'label' parameter of PrivacyAccountant.as_default must be a string of one "
                f"line, of at most {LONGEST} characters. Got {shown(label)}."
            )
        outer = self._label_here()
        named = self._labeled(": ".join(filter(None, (outer, label))) or None)
        with put_in_force(named):
            yield named

    @contextmanager
    def parallel(self, partition: str, part: str) -> Iterator[Self]:
        """Declare that the releases of a block see one part of the records only.

        A record is in one part of a partition, so of its parts only the costliest counts, also in
        gamma: releases of other parts need not cover it. Which record is in which part must be
        public, and must not change when a record is replaced; that is assumed, and nobody checks
        it. What a thread or a process that was begun in a block releases counts for all records.
        Where a generator or a coroutine that opened a block waits, a release of the ledger is
        refused: it would count in the part.

        Parameters
        ----------
        partition : str
            What the records are divided by, such as "hospital".
        part : str
            Which part the releases see.

        Yields
        ------
        PrivacyAccountant
            This one.

        Examples
        --------
        >>> from skdp import PrivacyGuarantee
        >>> from skdp.accounting import PrivacyAccountant
        >>> ledger = PrivacyAccountant(":memory:", epsilon=1.0)
        >>> for hospital in ("north", "south"):
        ...     with ledger.parallel("hospital", hospital):
        ...         ledger.spend(PrivacyGuarantee(epsilon=1.0))
        >>> ledger.total().epsilon
        1.0
        """
        with put_in_part(self._ledger.identity, partition, part):
            yield self

    def __str__(self) -> str:
        limits = vars(self._ledger.limits)
        unlimited = math.isinf(self._ledger.limits.epsilon)
        left, of_ten = self._sums.left(1), self._sums.left(10)
        shares = f"epsilon={left:g} for one release, {of_ten:g} for each of ten"
        if limits["delta"] and not unlimited:
            delta = self._sums.delta_left()
            shares += f"; delta={delta:g}" if delta else "; no delta"
        if limits["gamma"] is not None:
            gamma = self._sums.gamma_left()
            none = "no gamma: only what is known on paper"
            shares += f"; gamma={gamma:g}" if gamma else f"; {none}"
        return "\n".join(
            [
                f"budget: {'no limit' if unlimited else numbers(limits)}",
                f"spent: {self.total()}",
                f"left: {shares if left else 'nothing'}",
            ]
        )

    def __repr__(self) -> str:
        return f"PrivacyAccountant({self.path!r}, {numbers(vars(self._ledger.limits))})"

    def _repr_html_(self) -> str:
        lines = (line.partition(": ") for line in str(self).splitlines())
        cells = (f"<tr><th>{key}</th><td>{html.escape(text)}</td></tr>" for key, _, text in lines)
        return f"<table>{''.join(cells)}</table>"

    # A copy refers to the same ledger: scikit-learn's clone copies parameters.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __reduce__(self) -> tuple:
        ledger = self._ledger
        if ledger.path == MEMORY:
            raise TypeError(
                "A ledger in memory belongs to one process and cannot be pickled. Give "
                "PrivacyAccountant the path of a file."
            )
        limits = None if ledger.read_only else ledger.limits
        label = self._labeled_here()._label
        return _reopen, (ledger.path, ledger.timeout, limits, ledger.identity, label)


def _reopen(
    path: str, timeout: float, limits: Limits | None, identity: str, label: str | None = None
) -> PrivacyAccountant:
    """Return the accountant of this process for the same ledger."""
    with lock:
        key = (path, identity, limits is None)
        found = _reopened.get(key)
        if found is None:
            found = PrivacyAccountant._of(Sums(Ledger(path, timeout, limits, identity)))
            _reopened[key] = found
    found._remember()
    named = found._labeled(label)
    if label is not None:
        named._label_came_along = True
    return named
