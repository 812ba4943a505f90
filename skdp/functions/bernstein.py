"""The Bernstein basis on a box: a function becomes its values on a lattice, and back.

Noise is added to the values. From the coefficients to a normalized density, all else is computed
from what is released, so it costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.core.checks import check_count, check_rules, floats, shorten
from skdp.core.dataset import validate_rows
from skdp.functions.bernstein_basis import (
    MAX_BASIS,
    MAX_DEGREE,
    MAX_ORDER,
    as_tensor,
    bernstein_basis,
    choose,
    iterate,
)

CHUNK_VALUES = 2**22  # doubles of one work array, 32 MB


class BernsteinTransformer(TransformerMixin, BaseEstimator):
    """Tensor product of Bernstein polynomials on a box, with iterated coefficients.

    With the columns of X scaled to [0, 1], there is one basis function for every lattice point
    ``q / degree``, the product over the columns of ``C(degree, q_j) u_j^q_j (1 - u_j)^(degree -
    q_j)``. :meth:`coefficients` turns (noisy) values on `lattice_` into coefficients of this
    basis, and :meth:`evaluate` makes the released function of them. For ``order=1`` the
    coefficients are the values and the function is the Bernstein polynomial; a higher order comes
    closer to the values, and enlarges their noise by at most ``2**order - 1``.

    Parameters
    ----------
    degree : int in [1, 1000], default=10
        Degree k in every column; the lattice has ``(degree + 1) ** n_features`` points.
    order : int in [1, 1000] or "auto", default="auto"
        How often the Bernstein operator is iterated [1]_. "auto" takes the order that suits the
        released values, by generalized cross-validation. It sees nothing else, so it costs no
        privacy.
    feature_range : pair of float, array-like of shape (n_features, 2), or dict of name to pair
        The box: lowest and highest value, of all columns or column by column, or by the name of
        each column of a frame. It is part of the released function, so it is the user's decision
        and never taken from the data.
    clip : bool, default=False
        Move a point outside the box to the border (True) or refuse it (False).

    Attributes
    ----------
    feature_range_ : ndarray of shape (n_features, 2)
        The box, one row for each column.
    n_basis_ : int
        Number of basis functions and of lattice points.
    lattice_ : ndarray of shape (n_basis, n_features)
        The lattice in the units of X, the last column varying fastest. Made when asked for.
    n_features_in_ : int
        Number of columns seen by :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, when X has them.

    References
    ----------
    .. [1] Aldà and Rubinstein, "The Bernstein Mechanism: Function Release under Differential
       Privacy", AAAI 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BernsteinTransformer
    >>> bernstein = BernsteinTransformer(degree=25, feature_range=(0, 1)).fit(np.zeros((1, 1)))
    >>> values = bernstein.lattice_[:, 0] * np.sin(10 * bernstein.lattice_[:, 0])
    >>> bernstein.evaluate(bernstein.coefficients(values), [[0.2], [0.5]]).round(2)
    array([ 0.18, -0.48])
    """

    def __init__(
        self, degree: int = 10, order: int | str = "auto", *, feature_range: Any, clip: bool = False
    ) -> None:
        self.degree = degree
        self.order = order
        self.feature_range = feature_range
        self.clip = clip

    def fit(self, X: ArrayLike, y: object = None) -> BernsteinTransformer:
        """Check the parameters against the number and the names of the columns of X."""
        n_features = validate_data(self, X, dtype=np.float64).shape[1]
        check_count("degree", self.degree, "BernsteinTransformer", at_most=MAX_DEGREE)
        if isinstance(self.order, str):
            rule = f"be 'auto' or an integer from 1 to {MAX_ORDER}"
            check_rules("BernsteinTransformer", order=(self.order, self.order == "auto", rule))
        else:
            check_count("order", self.order, "BernsteinTransformer", at_most=MAX_ORDER)
        rows = rows_by_column(self.feature_range, getattr(self, "feature_names_in_", None))
        self.feature_range_ = _box(rows, n_features)
        n_basis = (self.degree + 1) ** n_features
        if n_basis > MAX_BASIS:
            raise ValueError(
                f"BernsteinTransformer with degree={self.degree} on {n_features} features has more "
                f"than {MAX_BASIS} basis functions. Lower the degree or select fewer features."
            )
        self.n_basis_ = n_basis
        return self

    @property
    def lattice_(self) -> NDArray[np.float64]:
        """Points on which the function is evaluated, in the units of X."""
        check_is_fitted(self)
        steps = np.arange(self.degree + 1) / self.degree
        # rounding may put a point an ulp outside of a very narrow box
        axes = [
            np.clip(low * (1 - steps) + high * steps, low, high)
            for low, high in self.feature_range_
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(self.n_basis_, -1)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate all basis functions, in the order of `lattice_`; each row sums to one."""
        U = self._unit(X)
        product = np.ones((len(U), 1))
        for column in U.T:
            factor = bernstein_basis(column, self.degree)
            product = (product[:, :, None] * factor[:, None, :]).reshape(len(U), -1)
        return product

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Name the basis functions after their lattice point, as in ``"x0^3 x1^5"``."""
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        powers = np.ndindex(*(self.degree + 1,) * self.n_features_in_)
        out = [" ".join(f"{n}^{q}" for n, q in zip(names, power, strict=True)) for power in powers]
        return np.asarray(out, dtype=object)

    def coefficients(self, values: ArrayLike) -> NDArray[np.float64]:
        """Turn values on the lattice into coefficients of the iterated operator.

        They are ``sum_{j < order} (I - M)^j values`` with M the basis at the lattice points. With
        ``order="auto"`` all columns of values get the same order.

        Parameters
        ----------
        values : array-like of shape (n_basis,) or (n_basis, n_outputs)
            Values of the function on `lattice_`, as released.

        Returns
        -------
        ndarray of shape (n_basis,) or (n_basis, n_outputs)
            The coefficients.
        """
        check_is_fitted(self)
        tensor = as_tensor(values, "values", self.degree, self.n_features_in_)
        order = self.order
        found = choose(tensor) if isinstance(order, str) else iterate(tensor, order)
        return found.reshape(np.shape(values)).copy()

    def evaluate(self, coefficients: ArrayLike, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the function with these coefficients, without the matrix of the basis.

        Parameters
        ----------
        coefficients : array-like of shape (n_basis,) or (n_basis, n_outputs)
            As returned by :meth:`coefficients`.
        X : array-like of shape (n_samples, n_features)
            Points of the box.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            ``transform(X) @ coefficients``.

        Raises
        ------
        ValueError
            If a point is outside the box and `clip` is False, or the coefficients do not fit.
        """
        check_is_fitted(self)
        tensor = as_tensor(coefficients, "coefficients", self.degree, self.n_features_in_)
        U = self._unit(X)
        result = np.empty((len(U), tensor.shape[-1]))
        for rows in gen_batches(len(U), max(1, CHUNK_VALUES * len(tensor) // tensor.size)):
            factors = [bernstein_basis(column, len(tensor) - 1) for column in U[rows].T]
            partial = np.tensordot(factors[0], tensor, axes=1)
            for factor in factors[1:]:
                partial = np.einsum("np,np...->n...", factor, partial)
            result[rows] = partial
        return result.reshape(len(U), *np.shape(coefficients)[1:])

    def integral(self, coefficients: ArrayLike) -> NDArray[np.float64] | float:
        """Integrate the function with these coefficients over the box, exactly.

        Parameters
        ----------
        coefficients : array-like of shape (n_basis,) or (n_basis, n_outputs)
            As returned by :meth:`coefficients`.

        Returns
        -------
        float or ndarray of shape (n_outputs,)
            The integral, in units of the function times the volume of the box.
        """
        check_is_fitted(self)
        tensor = as_tensor(coefficients, "coefficients", self.degree, self.n_features_in_)
        mean = tensor.reshape(-1, tensor.shape[-1]).mean(axis=0)
        total = math.prod(np.ptp(self.feature_range_, axis=1).tolist()) * mean
        return float(total[0]) if np.ndim(coefficients) == 1 else total

    def _unit(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scale points of the box to the unit cube."""
        check_is_fitted(self)
        points = validate_rows(self, X, dtype=np.float64)
        low, high = self.feature_range_.T
        if self.clip:
            points = np.clip(points, low, high)
        elif ((low > points) | (points > high)).any():
            raise ValueError(
                "X has values outside the 'feature_range' parameter of BernsteinTransformer. "
                "Declare a wider range, or set clip=True to move them to its border."
            )
        return (points - low) / (high - low)


def rows_by_column(feature_range: ArrayLike | Mapping, names: NDArray | None) -> ArrayLike:
    """Return the rows of a box that names its columns, in their order; another box as it is."""
    if not isinstance(feature_range, Mapping):
        return feature_range
    columns = [] if names is None else list(names)
    if set(columns) != set(feature_range):
        of_records = f"are {shorten(columns)}" if columns else "have no names"
        raise ValueError(
            "The 'feature_range' parameter of BernsteinTransformer must name each column, if it is "
            f"a dict. It names {shorten(feature_range)}, and the columns {of_records}."
        )
    return [feature_range[name] for name in columns]


def _box(feature_range: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """Check the declared box and give it one row for each feature."""
    box = floats(feature_range)
    box = np.empty(0) if box is None else box
    box = np.tile(box, (n_features, 1)) if box.shape == (2,) else box
    good = box.shape == (n_features, 2) and bool(
        np.isfinite(box).all() and (box[:, 0] < box[:, 1]).all()
    )
    good = good and math.isfinite(math.prod((box[:, 1] - box[:, 0]).tolist()))
    rule = (
        f"be a pair (low, high) or list one for each column, here {n_features}, finite with low "
        "below high, such as (0, 1), declared from what is known without the data"
    )
    check_rules("BernsteinTransformer", feature_range=(feature_range, good, rule))
    return box
