"""Oracles of records with responses, for estimators that have no use for a response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import Generator

from skdp.core.dataset import as_dataset
from skdp.sensitivity.adapters import describe_oracle, has_independent_records
from skdp.sensitivity.public_data import PublicDataOracle


class _WithoutResponse:
    """An oracle whose responses are left out."""

    classes_ = None

    def __init__(self, oracle: Callable[[int, Generator], Any]):
        self.oracle = oracle
        self.description = describe_oracle(oracle)
        self.independent_records = has_independent_records(oracle)

    def __call__(self, n_samples: int, rng: Generator) -> Any:
        sample = self.oracle(n_samples, rng)
        return as_dataset(sample, f"What the oracle {self.description} returns").X


def without_response(oracle: Callable[[int, Generator], Any]) -> Callable:
    """Let an oracle yield X alone, whatever it yields.

    It draws the same X from the same generator. A PublicDataOracle stays one, since there are
    faster ways with a table.
    """
    if type(oracle) is not PublicDataOracle:
        return _WithoutResponse(oracle)
    return oracle if oracle.table.y is None else PublicDataOracle(oracle.table.X)
