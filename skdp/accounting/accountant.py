"""PrivacyAccountant: what all releases of some data may cost together, and have cost."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Self
from weakref import finalize

from skdp.accounting.account import Account
from skdp.accounting.ledger import COLUMNS, MEMORY, Ledger
from skdp.accounting.spend import Spend, estimator_first, short_label
from skdp.accounting.tally import BudgetTotal, Limits, Tally, check_limits
from skdp.core.checks import LONGEST, check_count, check_real, shown, warn
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.exceptions import LedgerError

_blocks: ContextVar[tuple[PrivacyAccountant, ...]] = ContextVar("blocks", default=())
_open: list[PrivacyAccountant] = []  # of the blocks of all threads
opened: dict[tuple, str] = {}  # names of the budgets of this process, the last one at the end


class PrivacyAccountant:
    """A budget for all releases of some private data, kept in a file.

    Each release is a row of the ledger, on the disk before private data is looked at; one that
    would exceed a limit is refused. Everybody who has the path shares the budget: clones, pickles
    and copies of an accountant, threads, and the processes of this machine.

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
        Part of `delta` that is kept back, so that many small releases cost less than the sum of
        their epsilons: see the user guide. The deltas of the releases share the rest.

    Raises
    ------
    ValueError
        If a limit is out of range.
    LedgerError
        If there is a ledger with other limits, or a file that is not a whole ledger.

    Warns
    -----
    UserWarning
        If a release brings the total gamma or delta to 1, before it is paid for: together the
        releases then promise nothing.

    See Also
    --------
    default_accountant : The accountant of a release that is given none.

    Notes
    -----
    Limits hold whatever made the analyst choose the next epsilon: they are checked by filters,
    basic and, with a `slack`, fully adaptive advanced composition [1]_.

    References
    ----------
    .. [1] Whitehouse, Ramdas, Rogers and Wu, "Fully-Adaptive Composition in Differential Privacy",
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
    _where: tuple[str, str] = "", ""  # partition and part

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | None = None,
        slack: float = 0.0,
    ):
        limits = check_limits(epsilon, delta, gamma, slack)
        self._account = Account(Ledger(os.fspath(path), limits))
        if self.is_kept:
            self._remember()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PrivacyAccountant:
        """Open an existing ledger to read it.

        Parameters
        ----------
        path : str or path-like
            The ledger.

        Returns
        -------
        PrivacyAccountant
            With the limits of the file; it refuses to spend.

        Raises
        ------
        LedgerError
            If there is no whole ledger.
        """
        return _reopen(os.fspath(path))

    def _remember(self) -> None:
        """Let releases that are charged to no budget be told of this one while it is there."""
        key = self._account.ledger.key
        opened.pop(key, None)
        opened[key] = repr(self)
        if self.path == MEMORY:
            finalize(self._account, opened.pop, key, None)

    @property
    def is_kept(self) -> bool:
        """Whether the ledger is in a file or has a limit."""
        return self.path != MEMORY or math.isfinite(self._limits.epsilon)

    @property
    def path(self) -> str:
        """The path of the ledger."""
        return self._account.ledger.path

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits of epsilon, delta and gamma, and the slack."""
        return dict(vars(self._limits))

    @property
    def _limits(self) -> Limits:
        return self._account.ledger.limits

    def spend(
        self,
        guarantee: PrivacyGuarantee,
        *,
        law: NoiseLaw | None = None,
        n_releases: int = 1,
        composed_at: float | None = None,
        sensitivity_key: str | None = None,
        label: str | None = None,
    ) -> None:
        """Count a release, before it is made.

        When this returns, the row is on the disk. If it raises, private data must not be looked at.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            The promise of the release.
        law : NoiseLaw or None, default=None
            The law of its noise; None if no more is known than the guarantee.
        n_releases : int of at least 1, default=1
            Length of a series of equal releases that is fixed in advance and counted as a whole.
            Their targets may depend on earlier outcomes; number, epsilons and noise may not.
        composed_at : float in [0, 1) or None, default=None
            Delta at which such a series is composed by the laws of its noise, which costs less than
            its releases one by one. None takes their sum.
        sensitivity_key : str or None, default=None
            Identifies the sensitivity estimate. Its gamma counts for each release, the doubt that
            its confidence leaves once for each key. None is an estimate of its own.
        label : str or None, default=None
            A name of the release, in public words.

        Raises
        ------
        BudgetExceededError
            If the release would exceed a limit.
        LedgerError
            If the ledger cannot be written.
        ValueError
            If `law` is not that of the guarantee, `composed_at` is below the delta of the releases,
            or the ledger is for other neighboring datasets.
        """
        row = self._row(
            guarantee, n_releases, composed_at, label, law=law, sensitivity_key=sensitivity_key
        )
        self._account.commit(row, guarantee)

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
            If they would exceed a limit together. The message says how many of them fit.
        """
        self._account.check([(self._row(**each), each["guarantee"]) for each in spends])

    def check(self, model: Any, n_fits: int) -> None:
        """Refuse fits of a model that the budget does not allow together, before the first.

        A search of scikit-learn goes on with missing scores when the budget is exhausted within
        it. Nothing is spent and nothing is kept free, as by :meth:`rehearse`.

        Parameters
        ----------
        model : PrivateEstimator
            The model, fitted or not. Its mechanism and its sensitivity say what a fit costs.
        n_fits : int of at least 1
            Number of fits: for a grid search the candidates times the folds, plus one. Where the
            grid changes the mechanism, take the costliest candidate as the model.

        Raises
        ------
        BudgetExceededError
            If so many fits would exceed a limit. The message says how many fit.

        Examples
        --------
        A grid search over two candidates in three folds, and the fit of the best one:

        >>> from sklearn.linear_model import Ridge
        >>> from skdp import BudgetExceededError, LaplaceMechanism, PrivateEstimator
        >>> from skdp.accounting import PrivacyAccountant
        >>> ledger = PrivacyAccountant(":memory:", epsilon=3.0)
        >>> model = PrivateEstimator(Ridge(), mechanism=LaplaceMechanism(0.5), sensitivity=0.1)
        >>> try:
        ...     ledger.check(model, n_fits=2 * 3 + 1)
        ... except BudgetExceededError as error:
        ...     print("6 would fit" in str(error))
        True
        """
        n_fits = check_count("n_fits", n_fits, "PrivacyAccountant.check")
        if not hasattr(model, "_least_spend"):
            raise TypeError(
                "The 'model' parameter of PrivacyAccountant.check must be a PrivateEstimator. "
                f"Got {shown(model)}."
            )
        spend = model._least_spend()
        self._account.check([(self._row(**spend), spend["guarantee"])] * n_fits)

    def _row(
        self,
        guarantee: PrivacyGuarantee,
        n_releases: int = 1,
        composed_at: float | None = None,
        label: str | None = None,
        **others: Any,
    ) -> Spend:
        """Return the row of a release, or refuse what is none."""
        owner = "PrivacyAccountant.spend"
        self._check_writable()
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(
                f"The 'guarantee' parameter of {owner} must be a PrivacyGuarantee, such as that of "
                "a release, or for what was spent elsewhere PrivacyGuarantee(epsilon=..., "
                f"delta=..., gamma=...). Got {shown(guarantee)}."
            )
        n_releases = check_count("n_releases", n_releases, owner)
        if composed_at is not None:
            check_real("composed_at", composed_at, owner, 0.0, 1.0, closed="l")
        block = self._label_here
        if block is not None:
            label = ": ".join(filter(None, (block, estimator_first(label or ""))))
        partition, part = self._where
        row = Spend.of(
            guarantee, label=label, n_releases=n_releases, partition=partition, part=part, **others
        )
        if composed_at is None or n_releases == 1:
            return row
        together = Tally().add(row).fixed_total(self._limits, composed_at)
        return replace(row, epsilon=together.epsilon, delta=together.delta)

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
            The total is then the least of basic, advanced and numerical composition. Otherwise it
            is the sum or, where that is above the limit, the limit itself.
        label : str or None, default=None
            A block of :meth:`as_default` or a release whose own total is asked for; None is all.
            There is a warning if the ledger has no such label.

        Returns
        -------
        BudgetTotal
            With the name of the composition that gave it.

        Raises
        ------
        ValueError
            If `delta` is out of range, or goes with a total that is not fixed.
        """
        if delta is not None and not (fixed and 0 <= delta < 1):
            raise ValueError(
                "The 'delta' parameter of PrivacyAccountant.total must be in [0, 1), and goes with "
                f"fixed=True. Got {shown(delta)}."
            )
        tally = self._account.current() if label is None else self._tally_of(label)
        return tally.fixed_total(self._limits, delta) if fixed else tally.total(self._limits)

    def _tally_of(self, label: str) -> Tally:
        """Add up the rows of a block or of a release."""
        if not isinstance(label, str):
            raise TypeError(
                "The 'label' parameter of PrivacyAccountant.total must be a string or None. "
                f"Got {shown(label)}."
            )
        tally = Tally()
        for _, spend in self._account.ledger.rows():
            if f": {label}: " in f": {spend.label}: ":
                tally.add(spend)
        if not tally.n_releases:
            warn(f"The ledger {self.path!r} has no release with the label {label!r}: see `rows`.")
        return tally

    def remaining(self, n_releases: int = 1) -> float:
        """Return the largest epsilon that each of so many further releases may have.

        Parameters
        ----------
        n_releases : int of at least 1, default=1
            Their number, each with delta = 0 and no gamma.

        Returns
        -------
        float of at least 0
            The epsilon of each, which may be spent one by one.
        """
        check_count("n_releases", n_releases, "PrivacyAccountant.remaining")
        return self._account.left(n_releases, self._account.current().seen_by(*self._where))

    def rows(self) -> list[dict[str, object]]:
        """Return the releases as plain values.

        Returns
        -------
        list of dict
            One for each row of the ledger, in the order in which they were spent.
        """
        return [vars(spend) for _, spend in self._account.ledger.rows()]

    def to_frame(self) -> Any:
        """Return the releases as a data frame.

        Returns
        -------
        pandas.DataFrame
            A row for each row of the ledger. A long label is cut; `rows` has the whole.
        """
        import pandas as pd

        first = ["label", "epsilon", "delta", "gamma", "n_releases", "partition", "part"]
        frame = pd.DataFrame(self.rows(), columns=[*dict.fromkeys([*first, *COLUMNS])])
        return frame.assign(label=frame["label"].map(short_label, na_action="ignore"))

    @contextmanager
    def as_default(self, label: str | None = None) -> Iterator[PrivacyAccountant]:
        """Let this accountant count all releases of a block that are given no other one.

        Other threads count here too, unless blocks of another ledger are open as well. Worker
        processes do not know the block, and refuse releases without an accountant.

        Parameters
        ----------
        label : str or None, default=None
            A name for the block in public words, such as "Monday", which goes before the name of
            each release. A block within another of the same ledger goes by both labels.

        Yields
        ------
        PrivacyAccountant
            This one, or one of the same ledger that labels.

        Raises
        ------
        ValueError
            If the label is not of one line of at most 80 characters, or this accountant counts for
            a part of the records.
        """
        fits = isinstance(label, str) and label.isprintable() and len(label) <= LONGEST
        if not (label is None or fits):
            raise ValueError(
                "The 'label' parameter of PrivacyAccountant.as_default must be a string of one "
                f"line, of at most {LONGEST} characters. Got {shown(label)}."
            )
        if any(self._where):
            raise ValueError(
                "An accountant of a part must not be the default, which releases of other records "
                "would use. Give it to each release of the part, as accountant=..."
            )
        label = ": ".join(filter(None, (self._label_here, label))) or None
        named = self if label == self._label else _of(self._account, label)
        token = _blocks.set((*_blocks.get(), named))
        _open.append(named)
        try:
            yield named
        finally:
            _open.remove(named)
            _blocks.reset(token)

    @property
    def _label_here(self) -> str | None:
        """The label of this accountant, or that of a block of the same ledger."""
        key = self._account.ledger.key
        blocks = [each for each in _blocks.get() or _open if each._account.ledger.key == key]
        return next((each._label for each in [self, *reversed(blocks)] if each._label), None)

    def part(self, partition: str, part: str) -> PrivacyAccountant:
        """Return an accountant for releases that see one part of the records only.

        Of the parts of a partition only the costliest counts. Which record is in which part must be
        public, and must not change when a record is replaced, which nobody checks.

        Parameters
        ----------
        partition : str
            A name for the division of the records, such as "hospital".
        part : str
            The part that the releases see.

        Returns
        -------
        PrivacyAccountant
            One of the same ledger, to be given to each release of the part. What remains of it is
            for that part.

        Raises
        ------
        ValueError
            If this accountant is for a part already.

        Examples
        --------
        >>> from skdp import PrivacyGuarantee
        >>> from skdp.accounting import PrivacyAccountant
        >>> ledger = PrivacyAccountant(":memory:", epsilon=1.0)
        >>> for hospital in ("north", "south"):
        ...     ledger.part("hospital", hospital).spend(PrivacyGuarantee(epsilon=1.0))
        >>> ledger.total().epsilon
        1.0
        """
        if not (partition and isinstance(partition, str) and isinstance(part, str)):
            raise ValueError(
                "The 'partition' and 'part' parameters of PrivacyAccountant.part must be strings. "
                f"Got {shown(partition)} and {shown(part)}."
            )
        if any(self._where):
            raise ValueError(
                "A part must not be divided again. Name it by both partitions, such as "
                "part('region and year', 'north, 2026')."
            )
        return _of(self._account, self._label, (partition, part))

    def __str__(self) -> str:
        limits, tally = self._limits, self._account.current()
        return (
            f"budget: {'no limit' if math.isinf(limits.epsilon) else limits}\n"
            f"spent: {tally.total(limits)}\n"
            f"left: {self._account.left_in_words(tally)}"
        )

    def __repr__(self) -> str:
        return f"PrivacyAccountant({self.path!r}, {self._limits})"

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
        ledger = self._account.ledger
        if ledger.path == MEMORY:
            raise TypeError(
                "A ledger in memory belongs to one process and cannot be pickled. Give "
                "PrivacyAccountant the path of a file."
            )
        limits = None if ledger.read_only else ledger.limits
        return _reopen, (ledger.path, limits, ledger.identity, self._label, self._where)

    def _check_writable(self) -> None:
        if self._account.ledger.read_only:
            raise TypeError(
                f"The ledger {self.path!r} was opened to be read. To spend from it, make a "
                "PrivacyAccountant with its limits."
            )


def in_force() -> PrivacyAccountant | None:
    """Return the accountant of the innermost block, or of the ledger whose blocks are open."""
    own, others = _blocks.get(), [*_open]
    if not own and len({each._account.ledger.key for each in others}) > 1:
        raise LedgerError(
            "Blocks of as_default are open for several ledgers in other threads, and which of them "
            "counts here cannot be told. Give the release its accountant."
        )
    return next(reversed(own or others), None)


def _of(
    account: Account, label: str | None = None, where: tuple[str, str] = ("", "")
) -> PrivacyAccountant:
    """Return another accountant of the same ledger."""
    made = PrivacyAccountant.__new__(PrivacyAccountant)
    made._account, made._label, made._where = account, label, where
    return made


def _reopen(
    path: str,
    limits: Limits | None = None,
    identity: str | None = None,
    label: str | None = None,
    where: tuple[str, str] = ("", ""),
) -> PrivacyAccountant:
    """Return an accountant of a ledger that exists, such as one that was pickled."""
    made = _of(Account(Ledger(path, limits, identity)), label, where)
    made._remember()
    return made


def _forget_blocks() -> None:
    """Leave the blocks to the parent, in a forked process: it may outlive them."""
    _open.clear()
    _blocks.set(())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_blocks)
