"""Compare private records with an oracle's, column by column, for their owner's eyes only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from scipy import sparse

from skdp.core.dataset import Dataset, as_dataset
from skdp.core.schema import DatasetForm, declared
from skdp.core.streams import public_seed, ranges_key, streams
from skdp.core.types import Container, Matrix, Seed
from skdp.oracles.adapters import as_oracle, without_response
from skdp.oracles.drawing import draw
from skdp.oracles.trial import check_is_public
from skdp.sensitivity.likeness import OUTSIDE, ends_of, numbers_of

N_DRAWN = 10_000

NOT_FOR_OTHERS = (
    "These numbers are private and not protected: do not show this to others, and do not tune the "
    "release by it. Mend a wrong unit or code, and nothing else."
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The numbers of private records beside those of an oracle; it is no release.

    Parameters
    ----------
    columns : list of object
        The columns that hold numbers: their names, or places.
    drawn, private : ndarray of shape (n_columns, 2)
        Lowest and highest number of 10,000 draws or a few more, and of the private records.
    outside : ndarray of shape (n_columns,)
        Share of the private records more than 5 % of the range outside it.
    distance : ndarray of shape (n_columns,)
        Kolmogorov-Smirnov distance of the two samples, in [0, 1].
    """

    columns: list[object]
    drawn: Matrix
    private: Matrix
    outside: Matrix
    distance: Matrix

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"A Comparison cannot be pickled or copied. {NOT_FOR_OTHERS}")

    def __str__(self) -> str:
        names = [str(name) for name in self.columns]
        width = max(map(len, [*names, "column"]))
        head = f"{'column':{width}}  {'oracle':>23}  {'private':>23}  outside  distance"
        lines = [
            f"{name:{width}}  {low:>10.4g} to {high:>9.4g}  {least:>10.4g} to {most:>9.4g}  "
            f"{share:>7.1%}  {far:>8.2f}"
            for name, (low, high), (least, most), share, far in zip(
                names, self.drawn, self.private, self.outside, self.distance, strict=True
            )
        ]
        return "\n".join([NOT_FOR_OTHERS, head, *lines])

    __repr__ = __str__


def compare(oracle: object, X: Container, *, random_state: Seed = None) -> Comparison:
    """Compare private records with draws of an oracle, for their owner's eyes only.

    It shows wrong units and codes, and columns whose values lie elsewhere. Nothing is released and
    no budget pays, so what it says must stay with the owner of the records.

    Parameters
    ----------
    oracle : callable, frozen scipy.stats distribution or fitted estimator with `sample`
        As for :class:`SensitivitySampler`.
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        The private records.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    Comparison
        A table to be printed. It cannot be pickled.

    Raises
    ------
    ValueError
        If the oracle draws records of another form, or holds the private records.

    See Also
    --------
    ReleasePlan : Its `ranges` are public, and those of the oracle alone.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import UniformOracle, compare
    >>> cents = np.random.default_rng(0).uniform(0, 100, size=(50, 1))
    >>> compare(UniformOracle([(0, 1)]), cents, random_state=0).distance > 0.9
    array([ True])
    """
    source = without_response(as_oracle(oracle))
    given = as_dataset(X, "X")
    check_is_public(source, given)
    records = declared(given)
    seed, size = public_seed(random_state, "random_state", "compare"), records.n_records + 1

    def drawn(number: int) -> Dataset:
        found = draw(source, min(size, N_DRAWN), streams(seed, ranges_key(number))[0])
        return found._replace(groups=None)  # of persons, all records

    schema = DatasetForm.of(records).agree(DatasetForm.of(drawn(0)))
    name = f"The oracle {source.description}"
    numbers = range(math.ceil(N_DRAWN / size))
    public = np.concatenate([_numbers(schema.convert(drawn(each), name).X) for each in numbers])
    private = _numbers(schema.convert(records, "X").X)
    low, high = ends = ends_of(public)
    names = schema.parts.X.names if schema.parts.X.is_frame else range(len(low))
    kept = np.flatnonzero(np.isfinite(low) & np.isfinite(private).any(axis=0))
    with np.errstate(invalid="ignore"):
        excess = np.fmax(low - private, private - high) > OUTSIDE * (high - low)
    distance = [_distance(public[:, place], private[:, place]) for place in kept]
    return Comparison(
        [names[place] for place in kept],
        ends.T[kept],
        ends_of(private).T[kept],
        excess.mean(axis=0)[kept],
        np.array(distance),
    )


def _numbers(X: Container) -> Matrix:
    return numbers_of(X.toarray() if sparse.issparse(X) else X)


def _distance(numbers: Matrix, others: Matrix) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples, without what is missing."""
    from scipy.stats import ks_2samp  # its import takes time

    samples = (each[~np.isnan(each)] for each in (numbers, others))
    return float(ks_2samp(*samples, method="asymp").statistic)
