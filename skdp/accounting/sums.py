"""The sums over the rows of a ledger, and whether the limits allow one more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from skdp.accounting.ledger import Ledger, lock
from skdp.accounting.spend import DOWN, Spend, above, below, exact
from skdp.accounting.tally import Limits, Tally, largest_square
from skdp.core.guarantee import PrivacyGuarantee
from skdp.exceptions import BudgetExceededError, LedgerError

DUST = 1e-9
"""Of a limit: what is left below it is of rounding."""


class Sums:
    """What the rows of a ledger add up to; rows that were counted once are not read again."""

    asked = "asked for was"

    def __init__(self, ledger: Ledger):
        self.ledger = ledger
        self._counted: tuple[Tally, int, Spend | None] = (Tally(), 0, None)

    def commit(self, spend: Spend, guarantee: PrivacyGuarantee) -> None:
        """Write a row, if the limits allow it."""
        with self.ledger.transaction():
            with_it = self._admit(spend, guarantee)
            number = self.ledger.append(spend)
        self._counted = with_it, number, spend

    def _admit(self, spend: Spend, guarantee: PrivacyGuarantee) -> Tally:
        """Return the sums with a row, or refuse one that does not belong or exceeds a limit."""
        tally = self.current()
        if tally.relation not in (None, spend.relation):
            raise ValueError(
                f"The ledger {self.ledger.path!r} is for {tally.relation} neighbors. Got a release "
                f"for {spend.relation} ones, and the two do not add up."
            )
        with_it = tally.copy().add(spend)
        if with_it.admitted_by(self.ledger.limits) is None:
            raise self._exceeded(tally, [spend], guarantee)
        return with_it

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

    def _exceeded(
        self, tally: Tally, spends: list[Spend], guarantee: PrivacyGuarantee
    ) -> BudgetExceededError:
        limits, spent = self.ledger.limits, tally.total(self.ledger.limits)
        of_part = tally.seen_by(spends[-1].partition, spends[-1].part)
        left, gamma_left = self.left(1, of_part), self.gamma_left(of_part)
        with_it, alone = tally.copy(), Tally()
        for spend in spends:
            with_it.add(spend)
            alone.add(spend)
        asked = {"epsilon": spend.epsilon, "delta": spend.delta, "gamma": spend.gamma}
        which, what = "this release", numbers(asked)
        if alone.n_releases > 1:
            which, what = "these releases", str(alone.total(Limits(math.inf, 1.0, None, 0.0)))
        delta_left = self.delta_left(of_part)
        gamma = with_it.joint_gamma
        most = f"One more release may have an epsilon of {left:g}"
        if limits.gamma is not None and not gamma_left:
            most += " and no gamma (only what is known on paper)"
        if not left:
            remedy = "Nothing is left: stop here"
        elif limits.gamma is not None and gamma > exact(limits.gamma):
            remedy = f"Gamma would be {above(gamma):g}, jointly: sample at a smaller one"
            if with_it.total(limits).epsilon > limits.epsilon:
                remedy = f"{most}. {remedy}"
        elif with_it.delta > limits.free_delta:
            beside = " beside the slack" if limits.slack else ""
            remedy = f"One more release may have a delta of {delta_left:g}{beside}: ask for less"
            if not delta_left:
                remedy = f"No delta is left{beside}: ask for what promises without one"
        else:
            remedy = f"{most}: ask for less"
        return BudgetExceededError(
            f"The budget {self.ledger.path!r} does not allow {which}. Its limits are "
            f"{numbers(vars(limits))}; spent is {spent}; {self.asked} {what}. Nothing "
            f"was spent and nothing released. {remedy}, or agree on larger limits, begin a new "
            "ledger with them, and spend there first what is spent here.",
            spent,
            guarantee,
            left,
        )

    def left(self, n_releases: int, tally: Tally | None = None) -> float:
        """Return the largest epsilon that each of so many further releases may have."""
        limits, tally = self.ledger.limits, tally or self.current()
        if limits.gamma is not None and tally.joint_gamma > exact(limits.gamma):
            return 0.0  # as of a ledger from when releases shared the gamma of an estimate
        if math.isinf(limits.epsilon):
            return math.inf
        rest = DOWN.subtract(exact(limits.epsilon), tally.epsilon)
        best = below(DOWN.divide(rest, Decimal(n_releases)))
        if limits.slack:
            most = largest_square(limits.epsilon, limits.slack)
            squares = most * (1 - 1e-11) - above(tally.worst(1))  # more than rounding takes
            best = max(best, math.sqrt(max(0.0, squares) / n_releases) * (1 - 1e-11))
        return best if best * n_releases > DUST * limits.epsilon else 0.0

    def gamma_left(self, tally: Tally | None = None) -> float:
        """Return the gamma of further releases, and 0 where only a rounding of it is left."""
        return _rest(exact(self.ledger.limits.gamma or 0.0), (tally or self.current()).joint_gamma)

    def delta_left(self, tally: Tally | None = None) -> float:
        """Return the delta of further releases, and 0 where only a rounding of it is left."""
        return _rest(self.ledger.limits.free_delta, (tally or self.current()).delta)


def _rest(limit: Decimal, spent: Decimal) -> float:
    rest = below(DOWN.subtract(limit, spent))
    return rest if rest > DUST * float(limit) else 0.0


class Rehearsal(Sums):
    """The sums, and what is added on trial: nothing is written."""

    asked = "asked for was at least"  # before pairs are sampled, no more is known

    def __init__(self, sums: Sums):
        super().__init__(sums.ledger)
        self._before = self._tally = sums.current()
        self._asked: list[tuple[Spend, PrivacyGuarantee]] = []

    def current(self) -> Tally:
        return self._tally

    def commit(self, spend: Spend, guarantee: PrivacyGuarantee) -> None:
        self._asked.append((spend, guarantee))

    def check(self) -> None:
        """Refuse what was asked for if the limits do not allow all of it, one after the other."""
        for spend, guarantee in self._asked:
            self._tally = self._admit(spend, guarantee)

    def _exceeded(
        self, tally: Tally, spends: list[Spend], guarantee: PrivacyGuarantee
    ) -> BudgetExceededError:
        self._tally = self._before
        return super()._exceeded(self._before, [spend for spend, _ in self._asked], guarantee)


def numbers(values: Mapping[str, float | None]) -> str:
    """Write numbers with their names, those that say something."""
    said = {name: value for name, value in values.items() if value is not None}
    return ", ".join(
        f"{name}={value:g}" for name, value in said.items() if value or name == "epsilon"
    )
