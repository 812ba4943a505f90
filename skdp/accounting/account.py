"""The sums over the rows of a ledger, and the rows that its limits admit."""

from __future__ import annotations

import math
from fractions import Fraction
from weakref import WeakValueDictionary, finalize

from skdp.accounting.ledger import MEMORY, Ledger, lock
from skdp.accounting.spend import Spend
from skdp.accounting.tally import OTHER_PAIRS, Limits, Tally, largest_square
from skdp.core.checks import warn
from skdp.core.exact import above, below, finite
from skdp.core.guarantee import PrivacyGuarantee
from skdp.exceptions import BudgetExceededError, LedgerError

DUST = 1e-9  # a smaller share of a limit is left by rounding only
opened: dict[tuple[str, str | None], str] = {}  # the budgets of this process, by their ledgers
in_memory: WeakValueDictionary[str | None, Account] = WeakValueDictionary()  # which have no path
Counted = tuple[Tally, int, Spend | None]  # the sums over rows, and the last of them
_counted: dict[tuple[str, str | None], Counted] = {}  # by ledgers, so that a later account knows


class Account:
    """The sums over the rows of a ledger; rows that were counted once are not read again."""

    def __init__(self, ledger: Ledger):
        self.ledger = ledger
        self.name = f"PrivacyAccountant({ledger.path!r}, {ledger.limits})"
        self.is_kept = ledger.path != MEMORY or math.isfinite(ledger.limits.epsilon)
        if self.is_kept and not ledger.is_lost:
            opened[ledger.key] = self.name
        if ledger.path == MEMORY:
            in_memory[ledger.identity] = self
            finalize(self, opened.pop, ledger.key, None)
            finalize(self, _counted.pop, ledger.key, None)

    @property
    def _counted(self) -> Counted:
        return _counted.get(self.ledger.key, (Tally(), 0, None))

    @_counted.setter
    def _counted(self, counted: Counted) -> None:
        _counted[self.ledger.key] = counted

    def commit(self, spend: Spend, guarantee: PrivacyGuarantee) -> None:
        """Write a row, if the limits allow it."""
        with self.ledger.transaction():
            with_it = self.check([(spend, guarantee)])
            void = with_it.void(self.ledger.limits)
            if void and not self._counted[0].void(self.ledger.limits):
                warn(
                    f"With this release the budget {self.ledger.path!r} comes to "
                    f"{' and '.join(void)}: together its releases promise nothing. Sample at a "
                    "smaller gamma, ask for a smaller delta, or release less."
                )
            number = self.ledger.append(spend)
        self._counted = with_it, number, spend

    def check(self, asked: list[tuple[Spend, PrivacyGuarantee]]) -> Tally:
        """Return the sums with these rows, or refuse the first that does not fit."""
        before = self.current()
        tally = before.copy()
        for n_fitting, (spend, guarantee) in enumerate(asked):
            if tally.relation not in (None, spend.relation):
                raise ValueError(
                    f"The ledger {self.ledger.path!r} is for {tally.relation} neighbors. Got a "
                    f"release for {spend.relation} ones, and the two do not add up."
                )
            self._check_unit(guarantee)
            tally.add(spend)
            if tally.admitted_by(self.ledger.limits) is None:
                raise self._exceeded(before, [each for each, _ in asked], guarantee, n_fitting)
        return tally

    def _check_unit(self, guarantee: PrivacyGuarantee) -> None:
        """Refuse what says nothing of the unit of a ledger; that of the process counts all."""
        units = self.ledger.limits.unit, guarantee.unit
        if units == ("person", "record"):
            raise ValueError(
                f"The ledger {self.ledger.path!r} is for persons. Got a release for records: pass "
                "ids of persons as 'groups', or keep a ledger with unit='record'."
            )
        if units == ("record", "person") and guarantee.gamma and self.is_kept:
            raise ValueError(OTHER_PAIRS)

    def current(self) -> Tally:
        """Return the sums over all rows; those of other processes may be new."""
        with lock:
            tally, last, last_spend = self._counted
            rows = self.ledger.rows(last)
            if last and rows[:1] != [(last, last_spend)]:
                raise LedgerError(
                    f"The ledger {self.ledger.path!r} has lost rows that were counted before. "
                    "Bring back a copy that holds all releases."
                )
            if len(rows) > bool(last):
                tally = tally.copy()  # which an interrupt leaves half counted
                for number, spend in rows[bool(last) :]:
                    try:
                        tally.add(spend)
                    except (TypeError, ValueError, ArithmeticError):
                        raise LedgerError(
                            f"The ledger {self.ledger.path!r} is damaged: row {number} is not as "
                            "it was written. Bring back a copy that holds all releases."
                        ) from None
                self._counted = tally, *rows[-1]
            return tally

    def left(self, n_releases: int, tally: Tally) -> float:
        """Return the largest epsilon that each of so many further releases may have."""
        limits = self.ledger.limits
        if limits.gamma is not None and tally.gamma > finite(limits.gamma):
            return 0.0
        if math.isinf(limits.epsilon):
            return math.inf
        best = below((finite(limits.epsilon) - tally.epsilon) / n_releases)
        if limits.slack:
            most = largest_square(limits.epsilon, limits.slack)
            squares = most * (1 - 1e-11) - above(tally.square)  # rounding takes less
            best = max(best, math.sqrt(max(0.0, squares) / n_releases) * (1 - 1e-11))
        return best if best * n_releases > DUST * limits.epsilon else 0.0

    def left_in_words(self, tally: Tally, with_delta: bool = False) -> str:
        """Say what is left for further releases, among them some with a delta."""
        limits = self.ledger.limits
        left, of_ten = self.left(1, tally), self.left(10, tally)
        if not left:
            return "nothing"
        words = f"epsilon={left:g} for one release, {of_ten:g} for each of ten"
        if with_delta or (limits.delta and limits != Limits()):
            delta = _rest(limits.free_delta, tally.delta)
            words += f"; delta={delta:g}" if delta else "; no delta"
        if limits.gamma is not None:
            gamma = _rest(finite(limits.gamma), tally.gamma)
            words += f"; gamma={gamma:g}" if gamma else "; no gamma: only what is known on paper"
        return words

    def _exceeded(
        self, before: Tally, spends: list[Spend], guarantee: PrivacyGuarantee, n_fitting: int
    ) -> BudgetExceededError:
        limits, alone = self.ledger.limits, Tally.of(spends)
        spent = before.total(limits)
        which = "this release" if alone.n_releases == 1 else "these releases"
        fitting = f", of which {n_fitting} would fit" if len(spends) > 1 else ""
        left, in_words = self.left(1, before), self.left_in_words(before, bool(alone.delta))
        remedy = "Ask for less, or begin" if left else "Stop here, or begin"
        return BudgetExceededError(
            f"The budget {self.ledger.path!r} does not allow {which}, and nothing was released: "
            f"its limits are {limits}; spent is {spent}; asked for was {alone.total()}{fitting}. "
            f"Left is {in_words}. {remedy} a new ledger with larger limits and spend there first "
            "what is spent here.",
            spent,
            guarantee,
            left,
        )


def _rest(limit: Fraction, spent: Fraction) -> float:
    """Return what is left of a limit, and 0 where only a rounding of it is left."""
    left = below(limit - spent)
    return left if left > DUST * limit else 0.0
