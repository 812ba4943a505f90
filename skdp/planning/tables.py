"""Class tables as a way to a promise: the target that releases them, and `release_oracle`."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import check_accountant, find_payer
from skdp.core.checks import shorten, shown, warn
from skdp.core.dataset import Dataset
from skdp.core.dtypes import categories_of
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.persons import first_of_each, with_persons
from skdp.core.plain import is_table, plain
from skdp.core.room import undisturbed
from skdp.core.schema import DatasetForm, declared
from skdp.core.streams import TABLES, public_seed, streams
from skdp.core.target import Target
from skdp.core.types import AxisLabels, ByteSource, Container, Estimator, Matrix, Seed, Values
from skdp.estimators.catalog.compositions import is_pipeline
from skdp.estimators.configuration import alone, describe, seeded
from skdp.estimators.public_fit import clean_copy, fit_seeded
from skdp.exceptions import UtilityWarning
from skdp.execution import pay_and_run, records_of
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.mechanisms.noise import byte_source
from skdp.planning.making import Draft, check_mechanism, least_spend, make_plan
from skdp.results.expected import MADE_UP_TABLES, ExpectedScore
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.tables.columns import Category, cell_names
from skdp.tables.encoder import declared_values, with_categories
from skdp.tables.engines import EngineTable, engine_table
from skdp.tables.release import ClassTables, Design, ReleasedOracle, release_tables
from skdp.tables.response import N_HISTOGRAMS
from skdp.tables.schema import Schema
from skdp.tables.values import installed_library, library_of, together
from skdp.tables.worth import expected_scores

N_DRAWS, N_TRIED = 10_000, 500  # for the student, and to try it before anything is paid for
LEAST, ENOUGH = 20, {True: 100, False: 50}  # n epsilon / d; enough without and with a delta
# Estimators of these modules learn better from log odds than from categories and long tails.
ENCODED = {"discriminant_analysis", "gaussian_process", "kernel_ridge", "linear_model"}
ENCODED |= {"neighbors", "neural_network", "svm"}


class TablesTarget(Target):
    """Class tables, and the corrected weights; restored is the estimator that learns from them."""

    adds_noise = allow_nan = fits_estimator = True

    def __init__(
        self,
        chosen: ClassTables,
        mechanism: Mechanism,
        example: Dataset,
        student: Estimator,
        seed: int,
    ):
        self.chosen, self.mechanism, self.seed = clone(chosen), clone(mechanism), seed
        is_large = isinstance(example.X, EngineTable) and not example.X.is_small
        self.chosen.recalibrate = chosen.recalibrate and not is_large
        self.n_samples, self.library = example.n_records, library_of(example.X)
        design = self.design
        self.n_counts = sum(map(math.prod, design.shapes))
        self.shape = (self.n_counts + design.n_weights,)
        errors = np.full(self.shape, design.noise.deviation)
        errors[self.n_counts :] = np.nan  # nobody knows them
        self.errors = errors
        d = len(design.sizes)
        self.reach = self.n_samples * design.epsilon / d
        before = f"{N_HISTOGRAMS} histograms of y and " if design.cells else ""
        stage = ", and a corrected score" if design.n_weights else ", no recalibration" * is_large
        self.released = (
            f"{before}class tables of {d} columns, {self.n_counts} counts with a standard error of "
            f"{design.noise.deviation:.3g}{stage}; n epsilon / d is {self.reach:.4g}"
        )
        if self.is_classification:
            enough = ENOUGH[not design.delta]
            self.released += f". Below {LEAST} only the majority is in reach, from {enough} on "
            self.released += "the exact model"
        self.description = f"class tables of {d} columns"
        self.student, self.is_encoded = None, False
        if student is not None:
            self.estimator, self.student = student, alone(student)
            self.description += f" for {describe(student)}"
            self._try(example)
        chosen_by = design.schema, self.chosen.recalibrate, self.mechanism
        self.key_parts = (*chosen_by, self.n_samples, self.library, self.student, seed)

    @property
    def is_classification(self) -> bool:
        """Whether labels are predicted."""
        return isinstance(self.chosen.schema.response, Category)

    @property
    def design(self) -> Design:
        """What is settled of the release."""
        schema, recalibrate = self.chosen.schema, self.chosen.recalibrate
        return Design.of(schema, self.n_samples, self.mechanism, recalibrate)

    def bound(self, order: int) -> float:
        """Return how far a record moves the counts: it moves two of each table by one."""
        return math.sqrt(2 * self.design.noise.n_tables) ** (3 - order)

    def __call__(self, *parts: Container, seed: int, noise: ByteSource | None = None) -> Matrix:
        """Release: look at the records for the tables, and once more for the corrected score."""
        assert noise is not None
        rng, _ = streams(self.seed, TABLES)
        X, y = Dataset(*parts)[:2]
        chosen = self.chosen.schema, self.mechanism, noise, rng, self.chosen.recalibrate
        released = release_tables(X, y, *chosen)
        tables = [table.ravel() for table in (*released.histograms_, *released.tables_.values())]
        weights = [] if released.weights_ is None else [released.weights_]
        return np.concatenate([*tables, *weights])

    @property
    def expected_score(self) -> ExpectedScore | None:
        """The scores of releases of made-up tables."""
        scoring = "accuracy" if self.is_classification else "R²"
        private, exact, guess = expected_scores(self.design).T.copy()
        return ExpectedScore(private, exact, guess, scoring, MADE_UP_TABLES)

    def remark(self, restored: object) -> str:
        """Warn of columns, or of a response, of which nearly all records are in one cell."""
        assert isinstance(restored, ReleasedOracle)
        return restored.remark

    def with_mechanism(self, mechanism: Mechanism) -> TablesTarget:
        """Return the tables of another budget, to be scored."""
        other = copy.copy(self)
        other.mechanism = mechanism
        return other

    def oracle(self, value: Matrix, paid: PrivacyGuarantee | None = None) -> ReleasedOracle:
        """Make the oracle of released numbers."""
        design, numbers = self.design, np.asarray(value)
        ends = np.cumsum([*map(math.prod, design.shapes)])
        parts = zip(np.split(numbers[: self.n_counts], ends[:-1]), design.shapes, strict=True)
        tables = [part.reshape(shape) for part, shape in parts]
        weights = numbers[self.n_counts :] if design.n_weights else None
        return replace(design.oracle(tables, weights, self.library), guarantee_=paid)

    def restore(self, value: Matrix) -> object:
        """Teach the estimator draws of the released law."""
        oracle = self.oracle(value)
        return oracle if self.student is None else self._teach(oracle, N_DRAWS, self.is_encoded)

    def by_name(self, value: Matrix) -> tuple[Values, AxisLabels]:
        oracle, design = self.oracle(value), self.design
        classes = oracle.class_names_
        numbers: Values = {}
        labels: AxisLabels = {}
        for place, histogram in enumerate(oracle.histograms_):
            cut = oracle.cells_.of_histogram(oracle.histograms_[:place])
            title = f"histogram {place + 1} of y"
            numbers[title], labels[title] = histogram, (None, cell_names(cut, 0))
        for name, table in oracle.tables_.items():
            cells = cell_names(design.schema.columns[name], design.n_cells)
            numbers[str(name)], labels[str(name)] = table, (cells, classes)
        if oracle.weights_ is not None:
            names = [*map(str, oracle.tables_), "constant"]
            numbers["corrected weights"] = oracle.weights_
            labels["corrected weights"] = None, names
        return numbers, labels

    def _teach(self, oracle: ReleasedOracle, n_draws: int, is_encoded: bool) -> Estimator:
        """Fit the estimator to draws, behind a step that reads records as they were counted."""
        from sklearn.pipeline import make_pipeline  # its import takes time
        from sklearn.preprocessing import FunctionTransformer

        X, y = oracle(n_draws, streams(self.seed, TABLES)[0], complete=True)
        raw = FunctionTransformer(declared_values, kw_args=self.form)
        student = make_pipeline(oracle.encoder_ if is_encoded else raw, clone(self.student))
        with warnings.catch_warnings(), seeded(0):
            warnings.simplefilter("ignore")  # of a fit to noisy numbers
            return clean_copy(fit_seeded(student, Dataset(X, y)))

    def _try(self, example: Dataset) -> None:
        """Fit to draws of made-up tables, and predict, before anything is paid for."""
        schema = self.chosen.schema
        names = list(getattr(example.X, "columns", schema.columns))
        self.form = {"schema": schema, "names": names, "library": self.library}
        self.form["categories"] = _typed(example.X)
        corners = made_up(schema, self.library).X
        module = type(self.student).__module__.split(".")
        self.is_encoded = module[0] == "sklearn" and module[1] in ENCODED
        tried = [*map(self.oracle, self._made_up_values())]

        def attempt() -> None:
            for each in tried:
                self._teach(each, N_TRIED, self.is_encoded).predict(corners)

        try:
            attempt()
        except Exception:
            if self.is_encoded or is_pipeline(self.student):
                raise
            self.is_encoded = True  # it takes no words, say
            attempt()

    def _made_up_values(self) -> Iterator[Matrix]:
        """Make up tables without a signal, and with one in each column: a student learns both."""
        rng, d = streams(self.seed, TABLES)[0], len(self.chosen.schema.columns)
        first = np.arange(self.n_counts) % self.design.n_classes == 0
        for law in (rng.random(self.n_counts), 0.1 + first * rng.random(self.n_counts)):
            value = np.zeros(self.shape)
            value[: self.n_counts] = law * self.n_samples * d / law.sum()
            yield value


def _typed(X: Container) -> list:
    """List the columns of a frame that have a type of categories."""
    names = X.columns if is_table(X) else []
    return [name for name in names if categories_of(X[name].dtype) is not None]


def made_up(schema: Schema, library: str | None = None) -> Dataset:
    """Make records that hold each end of a range and each declared value."""
    if library is None:
        are_named = all(isinstance(name, str) for name in schema.columns)
        library = installed_library() if are_named else "array"
    held = {
        name: column.array if isinstance(column, Category) else np.array([column.low, column.high])
        for name, column in ({**schema.columns, None: schema.response}).items()
    }
    n = max(map(len, held.values()))
    held = {name: np.resize(values, n) for name, values in held.items()}
    y = held.pop(None)
    return Dataset(together(held, library), y)


def check_declared(schema: Schema, n_samples: int | None, dataset: Dataset) -> Dataset:
    """Refuse records of another form than the schema, and give categories their declared type."""
    X, y = dataset.X, dataset.y
    if (table := engine_table(X, y, schema, n_samples)) is not None:
        if table is not X:  # else it is an example, of which no row is counted
            table.check()
        return Dataset(table)
    if y is None:
        raise ValueError(
            "This PrivateEstimator requires y to be passed, but the target y is None: class tables "
            "count records by their responses."
        )
    _, n = schema.read(X, y)
    if not n:
        raise ValueError("X has no records: at least 1 is required. Got parts of 0.")
    others = [name for name in X.columns if name not in schema.columns] if is_table(X) else []
    if others:
        raise ValueError(
            f"X must have the declared columns alone. Got {shorten(others)} besides: drop them, or "
            "declare them in the Schema."
        )
    X = plain(X, "X", takes_lists=True)
    X = with_categories(X, schema, _typed(X))  # those of a private type may tell of a person
    if isinstance(schema.response, Category):  # else a score would tell 1 from "1"
        y = schema.response.clipped(y)
    return Dataset(X, y)


def check_schema(schema: object, estimator: Estimator) -> None:
    """Refuse what is no schema, or has no response for the estimator."""
    if not isinstance(schema, Schema):
        raise TypeError(
            f"The 'schema' parameter of ClassTables must be a Schema. Got {shown(schema)}."
        )
    is_labels = isinstance(schema.response, Category)
    kinds = {"classifier": is_classifier, "regressor": is_regressor}
    if estimator is not None and not kinds["classifier" if is_labels else "regressor"](estimator):
        declared = "'classes', which are for classifiers" if is_labels else "a 'y_range'"
        raise ValueError(
            f"The Schema of ClassTables has {declared}. Got {type(estimator).__name__}: declare "
            "'classes' for a classifier, and a 'y_range' for a regressor."
        )


def draft_tables(
    chosen: ClassTables, mechanism: Mechanism, example: Dataset, estimator: Estimator, seed: Seed
) -> Draft:
    """Settle the target and its bound."""
    if not isinstance(mechanism, LaplaceMechanism | GaussianMechanism):
        raise TypeError(
            "The 'mechanism' parameter must be a LaplaceMechanism or a GaussianMechanism with "
            f"ClassTables, whose counts have such noise. Got {type(mechanism).__name__}."
        )
    if chosen.n_samples not in (None, example.n_records):
        raise ValueError(
            "The 'n_samples' parameter of ClassTables must be the number of records, or None. Got "
            f"{shown(chosen.n_samples)}, and {example.n_records} records."
        )
    example = declared(example)
    number = public_seed(seed, "random_state", "ClassTables")
    target = TablesTarget(chosen, mechanism, example, estimator, number)
    if target.is_classification and target.reach < LEAST:
        warn(
            f"n epsilon / d is {target.reach:.3g} for n records and d columns. Below {LEAST} only "
            "the majority may be learned: declare fewer columns, or take a larger epsilon.",
            UtilityWarning,
        )
    order = int(mechanism.geometry.order)
    known = KnownSensitivity(
        target.bound(order),
        f"l{order}",
        example.n_records,
        preconditions="that the Schema was not read off the data",
        missing="numbers outside the declared ranges count as the nearest end, missing ones as "
        "the low end, and missing and undeclared values and labels as the first",
        source="user guide, 'Class tables'",
        shape=target.shape,
    )
    forms = DatasetForm.of(example, allow_nan=True)
    return Draft(target, forms, example, mechanism, known, is_of_one_target=True)


@undisturbed
def release_oracle(
    X: Container,
    y: Container,
    *,
    schema: Schema,
    mechanism: Mechanism,
    recalibrate: bool = True,
    n_samples: int | None = None,
    groups: Container = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> ReleasedOracle:
    """Release class tables, as an oracle of labelled records.

    The oracle may be handed on, and used wherever an oracle of public records is.

    Parameters
    ----------
    X : array or data frame of shape (n_samples, n_columns), or a table that an engine holds
        The private records.
    y : array-like of shape (n_samples,) or str
        The private labels or responses; for a table of an engine the name of their column.
    schema : Schema
        The ranges and values of the columns, which must not be read off the private data.
    mechanism : LaplaceMechanism or GaussianMechanism
        The noise, which says what is paid.
    recalibrate : bool, default=True
        Whether a part of the budget goes to a corrected score, as for :class:`ClassTables`.
    n_samples : int or None, default=None
        The number of records, which a table of an engine needs, as for :class:`ClassTables`.
    groups : array-like of n_samples ids, str or None, default=None
        The ids of the persons whom the records belong to, or the name of a column of X that has
        them and is taken out. One record of each person is read. The promise is about persons.
    accountant : PrivacyAccountant or None, default=None
        The budget that pays, before records are looked at. None takes
        `skdp.accounting.default_accountant`.
    random_state : int or None, default=None
        Source of the noise, as for :class:`PrivateEstimator`.

    Returns
    -------
    ReleasedOracle
        With the attributes `tables_`, `encoder_` and `guarantee_`.

    Raises
    ------
    ValueError, TypeError
        If the records, their types or the mechanism do not suit the schema.
    BudgetExceededError, LedgerError
        As :meth:`PrivateEstimator.fit`.

    See Also
    --------
    ClassTables : The same for an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, Number, Schema, release_oracle
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(0, 10, (2000, 2)), rng.integers(2, size=2000)
    >>> schema = Schema({"first": Number(0, 10), "second": Number(0, 10)}, classes=[0, 1])
    >>> oracle = release_oracle(X, y, schema=schema, mechanism=LaplaceMechanism(epsilon=1.0))
    >>> X_drawn, y_drawn = oracle(100, rng)
    >>> X_drawn.shape, oracle.guarantee_.epsilon
    ((100, 2), 1.0)
    """
    byte_source(random_state)  # refuses what is no seed before any work is done
    check_accountant(accountant, "release_oracle")
    check_mechanism(mechanism, "release_oracle")
    check_schema(schema, None)
    rows, unit = Dataset(X, y, groups=groups), "record" if groups is None else "person"
    rows = rows if groups is None else with_persons(rows)
    dataset = check_declared(schema, n_samples, first_of_each(rows))
    chosen = ClassTables(schema, recalibrate, n_samples)
    pays = find_payer(accountant)
    pays.rehearse(least_spend(mechanism, chosen, unit))
    draft = draft_tables(chosen, mechanism, dataset, None, random_state)
    plan = make_plan(replace(draft, unit=unit, prepare=partial(check_declared, schema, None)))
    private = draft.example if groups is None else records_of(plan, rows)
    released = pay_and_run(plan, private, pays, random_state)
    assert released.oracle is not None
    return released.oracle
