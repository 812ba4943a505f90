"""Oracles of records with responses, for estimators that have no use for a response."""

from __future__ import annotations

from numpy.random import Generator

from skdp.core.dataset import as_dataset
from skdp.core.oracle import Oracle
from skdp.core.types import Sample
from skdp.sensitivity.adapters import OracleAdapter
from skdp.sensitivity.public_data import PublicDataOracle


class _WithoutResponse(OracleAdapter):
    """An oracle whose responses are left out."""

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        sample = self.source(n_samples, rng)
        return as_dataset(sample, f"What the oracle {self.description} returns").X


def without_response(oracle: Oracle) -> Oracle:
    """Let an oracle yield X alone, whatever it yields.

    It draws the same X from the same generator. A PublicDataOracle stays one, since there are
    faster ways with a table.
    """
    if type(oracle) is not PublicDataOracle:
        return _WithoutResponse(oracle, oracle.description)
    table = oracle.table
    return oracle if table.y is None else PublicDataOracle(table.X, name=oracle.name)
