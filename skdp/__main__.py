"""``python -m skdp budget ledger.db`` lists releases, their cost, and the rest of the budget."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.spend import short_label
from skdp.exceptions import LedgerError

SHOWN = ("time", "label", "epsilon", "delta", "gamma", "law")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    about = "Look at what skdp has released, from the file of a PrivacyAccountant."
    parser = argparse.ArgumentParser(prog="python -m skdp", description=about)
    commands = parser.add_subparsers(required=True)
    budget = commands.add_parser("budget", help="show a ledger; nothing is written to it")
    budget.add_argument("ledger", help="its file, as in PrivacyAccountant(path, epsilon=...)")
    try:
        accountant = PrivacyAccountant.open(parser.parse_args(arguments).ledger)
        print(*_table(accountant.rows()), "", accountant, sep="\n")
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _table(rows: list[dict[str, object]]) -> list[str]:
    """Lay rows out in columns, without those that are empty."""
    cells = [
        [f"{row[name]:g}" if isinstance(row[name], float) else str(row[name] or "") for row in rows]
        for name in SHOWN
    ]
    cells = [[short_label(cell) for cell in column] for column in cells]
    columns = [[name, *each] for name, each in zip(SHOWN, cells, strict=True) if any(each)]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*columns, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
