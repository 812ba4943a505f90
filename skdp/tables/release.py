"""The release of class tables, and the oracle and the encoder that follow from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator

from skdp.core.checks import shown
from skdp.core.guarantee import RELEASED_LAW, PrivacyGuarantee
from skdp.core.oracle import Oracle
from skdp.core.types import ByteSource, Container, Matrix, Seed
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.discrete import MAX_SCALE
from skdp.tables import correction
from skdp.tables.budget import Objective, split
from skdp.tables.columns import Category, Number, cell_names
from skdp.tables.counts import BITS, Table, TableNoise
from skdp.tables.encoder import ClassTableEncoder
from skdp.tables.engines import EngineTable
from skdp.tables.held import HeldTable
from skdp.tables.law import (
    MOST,
    class_sizes,
    draw_cells,
    draw_classes,
    information,
    is_in_one_cell,
    law_of_column,
    log_odds,
    mean_sizes,
    n_cells_of_numbers,
)
from skdp.tables.response import (
    FEWEST_STEPS,
    N_HISTOGRAMS,
    ResponseCells,
    cells_of_response,
    one_by_one,
)
from skdp.tables.schema import Schema
from skdp.tables.values import library_of, together


class ClassTables(BaseEstimator):
    """Plain differential privacy from ranges and categories alone, for any model.

    For each column the counts of (cell, class) are released. They need no public record, and hold
    what each column by itself tells of the class: from their law any estimator can be taught.

    Parameters
    ----------
    schema : Schema
        The ranges and values of the columns, which must not be read off the private data.
    recalibrate : bool, default=True
        Whether a part of the budget goes to a correction of what columns have in common, where n
        epsilon allows it.
    n_samples : int or None, default=None
        The number of records, which is public. A table that an engine holds needs it, and is
        refused if it has another number.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed of the draws from released tables. It is public, and tells nothing of the noise.

    Notes
    -----
    Replacing a record changes two counts of each of d tables, so the L1 norm by at most 2 d, and
    the L2 norm by at most sqrt(2 d) (`skdp.tables.counts`). For a regression two histograms of y
    are released first, with the noise of a table each, and the cells of y in the tables follow them
    (`skdp.tables.response`). For the correction see
    `skdp.mechanisms.objective`, and for the sum of both `skdp.tables.budget.total_delta`. The rest
    is computed from what is released. It takes n epsilon / d of 100, or of 50 with a delta. An
    interaction of columns, such as their exclusive or, is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import ClassTables, LaplaceMechanism, Number, PrivateEstimator, Schema
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(0, 10, (2000, 2)), rng.integers(2, size=2000)
    >>> X[:, 0] = 0.5 * X[:, 0] + 5 * y
    >>> schema = Schema({"signal": Number(0, 10), "noise": Number(0, 10)}, classes=[0, 1])
    >>> model = PrivateEstimator(
    ...     LogisticRegression(),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=ClassTables(schema),
    ... )
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        schema: Schema,
        recalibrate: bool = True,
        n_samples: int | None = None,
        random_state: Seed = None,
    ):
        self.schema = schema
        self.recalibrate = recalibrate
        self.n_samples = n_samples
        self.random_state = random_state


@dataclass(frozen=True, eq=False)
class ReleasedOracle(Oracle):
    """Class tables that were released, and the law of records that follows from them.

    It holds nothing else of the private data. It draws a class, and given the class every column by
    itself; with a corrected score it then draws the class anew, given the record. So it knows of no
    interaction of columns.

    Parameters
    ----------
    schema : Schema
        The declared columns.
    n_records : int
        The number of private records, which is public.
    epsilon, delta : float
        What was paid.
    n_cells : int
        The most cells of a Number.
    library : str
        "pandas", "polars", "array" or "list", for the records that are drawn.
    tables_ : dict of array of shape (n_cells, n_classes)
        The noisy class tables, by column.
    deviation_ : float
        The standard deviation of the noise in each count.
    histograms_ : tuple of array, default=()
        Noisy histograms of a response that is a Number, by which its cells were chosen.
    weights_ : array or None, default=None
        Corrected weights of the encoded columns and of a constant 1, for the log odds of the second
        class. None where there are too few records for them.
    guarantee_ : PrivacyGuarantee or None, default=None
        The promise, where a budget has paid.
    """

    schema: Schema = field(repr=False)
    n_records: int
    epsilon: float
    delta: float
    n_cells: int
    library: str
    tables_: dict[object, Table] = field(repr=False)
    deviation_: float
    histograms_: tuple[Table, ...] = field(default=(), repr=False)
    weights_: Matrix | None = field(default=None, repr=False)
    guarantee_: PrivacyGuarantee | None = field(default=None, repr=False)
    independent_records: bool = field(default=True, init=False)

    @property
    def description(self) -> str:  # type: ignore[override]
        """What the guarantee calls it."""
        delta = f", delta={self.delta:g}" if self.delta else ""
        n = len(self.tables_)
        return f"{RELEASED_LAW} epsilon={self.epsilon:g}{delta} (class tables of {n} columns)"

    @property
    def classes_(self) -> NDArray | None:  # type: ignore[override]
        """The sorted labels; None for regression."""
        response = self.schema.response
        return None if isinstance(response, Number) else np.sort(response.array)

    @cached_property
    def sizes_(self) -> Matrix:
        """The sizes of the classes."""
        return class_sizes(list(self.tables_.values()), self.n_records, self.deviation_)

    @cached_property
    def laws_(self) -> list[tuple[Table, Table]]:
        """The smoothed table of each column, and log P(c | cell) / P(c)."""
        return [*self._read(law_of_column).values()]

    @cached_property
    def information_(self) -> dict[object, tuple[float, float]]:
        """What each column by itself tells of y, in bits, with its standard error; most first."""
        return dict(sorted(self._read(information).items(), key=lambda each: -each[1][0]))

    @cached_property
    def log_odds_(self) -> dict[object, tuple[Table, Table]]:
        """Log odds of each cell for each class but the first, and their standard errors."""
        return self._read(log_odds)

    def _read(self, read: Callable) -> dict[object, Any]:
        """Read all tables with the sizes of the classes."""
        return {
            name: read(self.tables_[name], self.sizes_, self.deviation_, column.ordered)
            for name, column in self.schema.columns.items()
        }

    @property
    def class_names_(self) -> list[str]:
        """The classes, or the cells of the response."""
        return cell_names(self.response_[0], self.n_classes)

    @property
    def n_classes(self) -> int:
        """The number of classes, or of cells of the response."""
        return next(iter(self.tables_.values())).shape[1]

    @cached_property
    def response_(self) -> tuple[Number | Category, NDArray]:
        """The response with its cells, and the value of each."""
        response = self.schema.response
        if isinstance(response, Category):
            return response, response.array
        if not self.histograms_:
            return one_by_one(response), response.low + np.arange(response.n_values)
        return self.cells_.of_tables(self.histograms_)

    @property
    def cells_(self) -> ResponseCells:
        """The rule by which histograms cut a response that is a Number."""
        response, n_steps = self.schema.response, len(self.histograms_[0])
        assert isinstance(response, Number)
        return ResponseCells(response, self.n_records, self.deviation_, n_steps, self.n_classes)

    @property
    def remark(self) -> str:
        """Say where nearly all records are in one cell, as if the schema were not of the data."""
        tables = {name: table.sum(axis=1) for name, table in self.tables_.items()}
        cells = {name: cell_names(self.schema.columns[name], self.n_cells) for name in tables}
        found = [
            f"{cells[name][np.argmax(counts)]!r} of {shown(name)}"
            for name, counts in tables.items()
            if is_in_one_cell(counts, self.n_records, self.deviation_ * math.sqrt(self.n_classes))
        ]
        if self.histograms_:
            if self.cells_.are_few(self.histograms_):
                found.append("one or two narrow parts of the range of y")
        else:
            sizes, error = mean_sizes([*self.tables_.values()], self.deviation_)
            if is_in_one_cell(sizes, self.n_records, error):
                found.append(f"{self.class_names_[np.argmax(sizes)]!r} of y")
        if not found:
            return ""
        return (
            f"Nearly all records count as {', as '.join(found)}. Should that surprise you, the "
            "Schema has another spelling, type or range than the records: what is undeclared or "
            "missing counts as the first value, and a range may be far too wide."
        )

    @property
    def encoder_(self) -> ClassTableEncoder:
        """The encoder of records, in whatever container."""
        return ClassTableEncoder(self.schema, [odds for _, odds in self.laws_], self.n_cells)

    def score(self, encoded: Matrix) -> Matrix:
        """Return the corrected log odds of the second class, of encoded records."""
        assert self.weights_ is not None
        return encoded @ self.weights_[:-1] + self.weights_[-1]

    def draw(
        self, n_samples: int, rng: Generator, complete: bool = False
    ) -> tuple[Container, NDArray[np.intp]]:
        """Draw records, and classes by number: independently, or all classes, as for students."""
        classes = draw_classes(self.sizes_, n_samples, rng, complete)
        drawn = {
            name: column.draw(draw_cells(law, classes, rng), self.n_cells, rng)
            for (name, column), (law, _) in zip(
                self.schema.columns.items(), self.laws_, strict=True
            )
        }
        X = together(drawn, self.library)
        if self.weights_ is not None:
            chance = expit(self.score(self.encoder_.transform(X)))
            classes = (rng.random(n_samples) < chance).astype(np.intp)
            if complete:
                classes[[np.argmin(chance), np.argmax(chance)]] = 0, 1
        return X, classes

    def __call__(
        self, n_samples: int, rng: Generator, complete: bool = False
    ) -> tuple[Container, NDArray]:
        X, classes = self.draw(n_samples, rng, complete)
        return X, self.response_[1][classes]


def release_tables(
    X: Container,
    y: Container,
    schema: Schema,
    mechanism: Mechanism,
    source: ByteSource,
    rng: Generator,
    recalibrate: bool = True,
) -> ReleasedOracle:
    """Release the class tables of a private dataset, and a corrected score where it is worth it.

    The promise is that of `mechanism`: the noise is Laplace without a delta, and Gaussian with one.
    It comes from `source`. Draws from what is released already come from `rng`, which may be
    public. Each private record is encoded by itself, into finite numbers whatever its entries are.
    """
    table = X if isinstance(X, EngineTable) else HeldTable(X, y, schema)
    design = Design.of(schema, table.n_records, mechanism, recalibrate)
    released = design.release(table, source, library_of(X))
    if not design.n_weights:
        return released
    drawn, drawn_classes = released.draw(correction.N_STUDENT, rng, complete=True)
    encoded = released.encoder_.transform(drawn)
    first = correction.student(encoded, drawn_classes)
    private, labels = table.encoded(released.encoder_, design.n_classes)
    weights = correction.correct(first, encoded, private, labels, design.objective_of, source)
    return replace(released, weights_=weights)


@dataclass(frozen=True)
class Design:
    """What is public of a release before it is made: it follows from n, schema and mechanism."""

    schema: Schema
    n_records: int
    epsilon: float
    delta: float
    n_classes: int
    n_cells: int
    n_weights: int
    cells: ResponseCells | None
    noise: TableNoise
    objective_of: Objective = field(repr=False, compare=False)

    @classmethod
    def of(cls, schema: Schema, n: int, mechanism: Mechanism, recalibrate: bool) -> Design:
        """Share the budget, and choose the cells."""
        promise = mechanism.guarantee()  # which checks its parameters
        epsilon, delta = promise.epsilon, promise.delta
        columns, response = schema.columns.values(), schema.response
        most = cells_of_response(n, epsilon, len(columns))
        is_cut = isinstance(response, Number) and response.n_values > most
        if isinstance(response, Number) and not is_cut:
            response = one_by_one(response)
        n_classes = response.n_cells(most)
        n_before = N_HISTOGRAMS * is_cut
        stage = correction.stage(n, epsilon, len(columns), n_classes) if recalibrate else None
        noise, objective_of = split(
            epsilon,
            delta,
            correction.SHARES[stage],
            len(columns) + n_before,
            n_classes * sum(column.n_cells(MOST) for column in columns) + MOST * n_before,
            correction.n_weights(stage, len(columns), not delta),
        )
        if noise.deviation > MAX_SCALE >> BITS:
            raise ValueError(
                f"The 'epsilon' parameter of {type(mechanism).__name__} is too small for the "
                f"tables of {len(columns)} columns, as such noise is not drawn. Got {epsilon:g}: "
                f"take at least {noise.n_tables}e-7."
            )
        n_cells = n_cells_of_numbers(n, noise.deviation)
        n_weights, cells = len(columns) + 1 if stage else 0, None
        if isinstance(response, Number) and n_before:
            n_steps = int(min(max(FEWEST_STEPS, n_cells), response.n_values))
            cells = ResponseCells(response, n, noise.deviation, n_steps, n_classes)
        return cls(
            *(schema, n, epsilon, delta, n_classes, n_cells, n_weights, cells, noise, objective_of)
        )

    @property
    def sizes(self) -> list[int]:
        """The number of cells of each column."""
        return [column.n_cells(self.n_cells) for column in self.schema.columns.values()]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the histograms of the response, and of the class tables."""
        steps = [] if self.cells is None else [(self.cells.n_steps,)] * N_HISTOGRAMS
        return [*steps, *((size, self.n_classes) for size in self.sizes)]

    def release(self, table: Any, source: ByteSource, library: str) -> ReleasedOracle:
        """Release the histograms of the response, each cut by those before, and the tables."""
        noisy: list[Table] = []
        if self.cells is not None:
            for _ in range(N_HISTOGRAMS):
                cells = self.cells.of_histogram(noisy)
                noisy += self.noise.add([table.cut(cells).responses()], source)
            table = table.cut(self.cells.of_tables(noisy)[0])
        elif isinstance(self.schema.response, Number):
            table = table.cut(one_by_one(self.schema.response))
        counted = table.counts(self.sizes, self.n_classes, self.n_cells)
        return self.oracle([*noisy, *self.noise.add(counted, source)], None, library)

    def oracle(self, noisy: list[Table], weights: Matrix | None, library: str) -> ReleasedOracle:
        """Make the oracle of noisy histograms and tables."""
        public = self.schema, self.n_records, self.epsilon, self.delta, self.n_cells, library
        before = len(noisy) - len(self.schema.columns)
        named = dict(zip(self.schema.columns, noisy[before:], strict=True))
        return ReleasedOracle(*public, named, self.noise.deviation, tuple(noisy[:before]), weights)
