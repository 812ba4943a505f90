"""``python -m skdp budget ledger.db`` shows releases, their cost, and the rest of the budget."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.ledger import COLUMNS
from skdp.accounting.spend import short_label
from skdp.exceptions import LedgerError
from skdp.results.folder import plain

SHOWN = ("time", "label", "n_releases", "epsilon", "delta", "gamma", "law", "partition", "part")
BROKEN_PIPE = 128 + 13  # the exit status of a process that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit status."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more
        return BROKEN_PIPE


def _run(arguments: Sequence[str] | None) -> int:
    about = "Look at what skdp has released, from the file of a PrivacyAccountant."
    parser = argparse.ArgumentParser(prog="python -m skdp", description=about)
    commands = parser.add_subparsers(required=True)
    budget = commands.add_parser("budget", help="show a ledger; nothing is written to it")
    budget.add_argument("ledger", help="its file, as in PrivacyAccountant(path, epsilon=...)")
    form = budget.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="its rows, as comma-separated values")
    form.add_argument("--json", action="store_true", help="limits, total, what is left, and rows")
    chosen = parser.parse_args(arguments)
    try:
        accountant = PrivacyAccountant.open(chosen.ledger)
        if chosen.csv:
            writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(accountant.rows())
        elif chosen.json:
            print(json.dumps(plain(_summary(accountant)), indent=2, allow_nan=False))
        else:
            blocks = _blocks(accountant)
            print(*_table(accountant.rows()), "", *blocks, *[""] * bool(blocks), sep="\n")
            print(accountant)
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _summary(accountant: PrivacyAccountant) -> dict[str, Any]:
    return {
        "limits": accountant.limits,
        "total": asdict(accountant.total()),
        "remaining": accountant.remaining(),
        "releases": accountant.rows(),
    }


def _blocks(accountant: PrivacyAccountant) -> list[str]:
    """Describe the promise of each block of `as_default`, where one has several releases."""
    labels = [str(row["label"] or "").partition(": ") for row in accountant.rows()]
    blocks = Counter(block for block, colon, _ in labels if colon)
    if max(blocks.values(), default=0) < 2:
        return []
    return [f"{short_label(block)}: {accountant.total(label=block)}" for block in blocks]


def _table(rows: list[dict[str, Any]]) -> list[str]:
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
