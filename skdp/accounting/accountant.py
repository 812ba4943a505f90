"""PrivacyAccountant: what all releases of some data may cost together, and have cost."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

from skdp.accounting.account import Account, in_memory
from skdp.accounting.ledger import Ledger, lock
from skdp.accounting.spend import Spend, estimator_first
from skdp.accounting.tally import BudgetTotal, Limits, check_limits
from skdp.core.checks import LONGEST, check_count, check_kind, check_rules, shown
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.exceptions import LedgerError

blocks: list[PrivacyAccountant] = []  # of as_default, in all threads; all are of one ledger


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
    unit : {"record", "person"}, default="record"
        What the total is about. A ledger for persons refuses releases for records. One for records
        takes those for persons, which hold for records too unless they were sampled.

    Raises
    ------
    ValueError
        If a limit is out of range.
    LedgerError
        If there is a ledger with other limits, or a file that is not a whole ledger.

    Notes
    -----
    Limits hold whatever made the analyst choose the next epsilon: they are checked by filters,
    basic and, with a `slack`, fully adaptive advanced composition [1]_. A release that brings the
    total gamma or delta to 1 is warned of before it is paid for: together they promise nothing.

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

    _label: str | None = None  # which goes before the names of releases

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float,
        delta: float = 0.0,
        gamma: float | None = None,
        slack: float = 0.0,
        unit: str = "record",
    ):
        limits = check_limits(epsilon, delta, gamma, slack, unit)
        self._account = Account(Ledger(os.fspath(path), limits))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PrivacyAccountant:
        """Open an existing ledger with its limits, to read it; it refuses to spend."""
        return _reopen(os.fspath(path))

    @property
    def is_kept(self) -> bool:
        """Whether the ledger is in a file or has a limit."""
        return self._account.is_kept

    @property
    def path(self) -> str:
        """The path of the ledger."""
        return self._account.ledger.path

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits of epsilon, delta and gamma, and the slack."""
        return self._limits.numbers

    @property
    def _limits(self) -> Limits:
        return self._account.ledger.limits

    def spend(
        self, guarantee: PrivacyGuarantee, *, law: NoiseLaw | None = None, label: str | None = None
    ) -> None:
        """Count a release, before it is made.

        When this returns, the row is on the disk. If it raises, private data must not be looked at.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            The promise of the release.
        law : NoiseLaw or None, default=None
            The law of its noise; None if no more is known than the guarantee.
        label : str or None, default=None
            A name of the release, in public words.

        Raises
        ------
        BudgetExceededError
            If the release would exceed a limit.
        LedgerError
            If the ledger cannot be written.
        ValueError
            If `law` is not that of the guarantee, or the ledger is for other neighboring datasets,
            or for persons where the release is for records.
        """
        self._account.commit(self._row(guarantee, law, label), guarantee)

    def rehearse(self, *spends: Mapping[str, Any]) -> None:
        """Refuse releases that the budget does not allow together, by the parameters of `spend`."""
        self._account.check([(self._row(**each), each["guarantee"]) for each in spends])

    def check(self, model: Any, n_fits: int) -> None:
        """Refuse fits of a model that the budget does not allow together, before the first.

        A search of scikit-learn goes on with missing scores when the budget is exhausted within
        it. Nothing is spent and nothing is kept free: another process may spend in between.

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
        """
        n_fits = check_count("n_fits", n_fits, "PrivacyAccountant.check")
        if not hasattr(model, "least_spend"):
            raise TypeError(
                "The 'model' parameter of PrivacyAccountant.check must be a PrivateEstimator. "
                f"Got {shown(model)}."
            )
        self.rehearse(*[model.least_spend()] * n_fits)

    def _row(
        self, guarantee: PrivacyGuarantee, law: NoiseLaw | None = None, label: str | None = None
    ) -> Spend:
        """Return the row of a release, or refuse what is none."""
        self._account.ledger.check_writable()
        rule = (
            "a PrivacyGuarantee, such as that of a release, or for what was spent elsewhere "
            "PrivacyGuarantee(epsilon=..., delta=..., gamma=...)"
        )
        check_kind("guarantee", guarantee, "PrivacyAccountant.spend", PrivacyGuarantee, rule)
        if self._label is not None:
            label = ": ".join(filter(None, (self._label, estimator_first(label or ""))))
        return Spend.of(guarantee, law, label)

    def total(self, *, fixed: bool = False, delta: float | None = None) -> BudgetTotal:
        """Return what all releases promise together.

        Parameters
        ----------
        fixed : bool, default=False
            Whether no epsilon was chosen by the outcome of an earlier release, which nobody checks.
            The total is then the least of basic and numerical composition. Otherwise it is the sum
            or, where that is above the limit, the limit itself.
        delta : float in [0, 1) or None, default=None
            Delta at which fixed releases are composed; None takes the limit of delta, or that of
            the releases if there is none.

        Returns
        -------
        BudgetTotal
            With the name of the composition that gave it.

        Raises
        ------
        ValueError
            If `delta` is out of range, or goes with a total that is not fixed.
        """
        fits = delta is None or (fixed and 0 <= delta < 1)
        rule = "be in [0, 1), and goes with fixed=True"
        check_rules("PrivacyAccountant.total", delta=(delta, fits, rule))
        tally = self._account.current()
        return tally.fixed_total(self._limits, delta) if fixed else tally.total(self._limits)

    def remaining(self, n_releases: int = 1) -> float:
        """Return the largest epsilon that each of so many releases without delta may have."""
        check_count("n_releases", n_releases, "PrivacyAccountant.remaining")
        return self._account.left(n_releases, self._account.current())

    def rows(self) -> list[dict[str, object]]:
        """Return each release as a dict of plain values, in the order in which they were spent."""
        return [vars(spend) for _, spend in self._account.ledger.rows()]

    def as_default(self, label: str | None = None) -> AbstractContextManager[PrivacyAccountant]:
        """Let this accountant count all releases of a block that are given no other one.

        That is so in all threads of this process, so all open blocks must be of one ledger. An
        estimator or a plan that is pickled within the block takes this accountant along, also to
        another process. Other releases of a worker process are refused, unless it is a program of
        its own, as those of Ray and `dask worker` are: pass `accountant` there.

        Parameters
        ----------
        label : str or None, default=None
            A name for the block in public words, such as "Monday", which goes before the name of
            each release.

        Returns
        -------
        context manager
            Its block gets this accountant, or one of the same ledger that labels. Entering it
            raises a LedgerError while a block of another ledger is open.
        """
        fits = isinstance(label, str) and label.isprintable() and len(label) <= LONGEST
        rule = f"be a string of one line, of at most {LONGEST} characters"
        check_rules("PrivacyAccountant.as_default", label=(label, label is None or fits, rule))
        return _Block(self if label is None else _of(self._account, label))

    def __str__(self) -> str:
        limits, tally = self._limits, self._account.current()
        budget = "no limit" if math.isinf(limits.epsilon) else limits
        left = self._account.left_in_words(tally)
        return f"budget: {budget}\nspent: {tally.total(limits)}\nleft: {left}"

    def __repr__(self) -> str:
        return self._account.name

    def __deepcopy__(self, memo: object = None) -> Self:
        return self  # a copy refers to the same ledger, and scikit-learn's clone copies parameters

    __copy__ = __sklearn_clone__ = __deepcopy__

    def __reduce__(self) -> tuple:
        ledger = self._account.ledger
        limits = None if ledger.read_only else ledger.limits
        return _reopen, (ledger.path, limits, ledger.identity, self._label)


class _Block(AbstractContextManager[PrivacyAccountant]):
    """A block whose releases an accountant counts; it is no decorator, which a coroutine leaves."""

    def __init__(self, accountant: PrivacyAccountant):
        self.accountant = accountant

    def __enter__(self) -> PrivacyAccountant:
        with lock:
            for other in blocks:
                if other._account.ledger.key != self.accountant._account.ledger.key:
                    raise LedgerError(
                        f"A block of the ledger {other.path!r} is open, and one ledger at a time "
                        "can be the default of a process. Give each release its accountant."
                    )
            blocks.append(self.accountant)
        return self.accountant

    def __exit__(self, *raised: object) -> None:
        blocks.remove(self.accountant)


def _of(account: Account, label: str | None) -> PrivacyAccountant:
    """Return another accountant of the same ledger."""
    made = PrivacyAccountant.__new__(PrivacyAccountant)
    made._account, made._label = account, label
    return made


def _reopen(
    path: str, limits: Limits | None = None, identity: str | None = None, label: str | None = None
) -> PrivacyAccountant:
    """Return an accountant of a ledger that exists, such as one that was pickled."""
    return _of(in_memory.get(identity) or Account(Ledger(path, limits, identity)), label)


if hasattr(os, "register_at_fork"):  # a forked process leaves the blocks to its parent
    os.register_at_fork(after_in_child=blocks.clear)
