"""Linear models that learn one sum over the records, and take the rest from public knowledge."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils import Tags
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skdp.core.checks import check_rules, floats, is_real
from skdp.core.types import Container, Matrix


def class_codes(n_classes: int) -> Matrix:
    """Return the corners of a simplex around 0, a row per class; products are [same] - 1 / k."""
    codes = np.zeros((n_classes, n_classes - 1))
    for k in range(1, n_classes):  # Helmert's contrasts: orthonormal columns, each of sum 0
        codes[:k, k - 1] = -1 / np.sqrt(k * (k + 1))
        codes[k, k - 1] = k / np.sqrt(k * (k + 1))
    return codes


def mean_product(codes: Container, features: Container) -> Matrix:
    """Return the mean over the records of code times features, shape (n_codes, n_features)."""
    return np.asarray(safe_sparse_dot(codes.T, features, dense_output=True)) / codes.shape[0]


def with_constant(features: Container, constant: float) -> Container:
    """Append a constant column, unless the constant is 0."""
    if constant == 0:
        return features
    column = np.full((features.shape[0], 1), float(constant))
    if sparse.issparse(features):
        return sparse.hstack([features, sparse.csr_array(column)], format="csr")
    return np.hstack([features, column])


class MomentModel(BaseEstimator):
    """Base of both models, which compute coefficients from a moment and a second moment."""

    constant: float
    shrinkage: float
    second_moment: ArrayLike | None
    shrinkage_: float
    moment_: Matrix
    second_moment_: Matrix
    coef_: Matrix
    intercept_: Matrix | float

    def fit(self, X: Container, y: Container) -> Self:
        """Compute the moments and the coefficients."""
        self._check()
        options = {"accept_sparse": "csr", "y_numeric": is_regressor(self)}
        X, y = validate_data(self, X, y, dtype=np.float64, **options)
        self.shrinkage_ = float(self.shrinkage)
        self.moment_ = mean_product(self._codes(y), with_constant(X, self.constant))
        if self.second_moment is None:
            rows = with_constant(X, 1.0)
            self.second_moment_ = mean_product(rows, rows)
        else:
            self.second_moment_ = self._given_second_moment(X.shape[1])
        self.derive()
        return self

    def predict(self, X: Container) -> NDArray:
        """Predict the class whose code is nearest, or the response."""
        return self._answers(self._scores(X))

    def _codes(self, y: NDArray) -> Matrix:
        """Learn labels, and return a row for each response, by which its record is multiplied."""
        raise NotImplementedError

    def _answers(self, scores: NDArray) -> NDArray:
        """Turn scores into predictions."""
        return scores

    def _solve(self) -> Matrix:
        """Return the least squares coefficients of (x, 1) for each code."""
        second, moment = self.second_moment_, self.moment_
        d = len(second) - 1
        isotropic = np.zeros_like(second)
        np.fill_diagonal(isotropic, np.trace(second[:d, :d]) / d)
        isotropic[d, d] = 1.0
        shrunk = (1 - self.shrinkage_) * second + self.shrinkage_ * isotropic
        if self.constant == 0:
            solved = moment @ linalg.pinvh(shrunk[:d, :d])
            return np.hstack([solved, np.zeros((len(moment), 1))])
        unit = np.append(np.ones(d), 1 / self.constant)
        return (moment * unit) @ linalg.pinvh(shrunk)

    def derive(self) -> None:
        """Compute the coefficients from `moment_` and `second_moment_`."""
        raise NotImplementedError

    def _check(self) -> None:
        for name, most in (("constant", 1e100), ("shrinkage", 1)):
            value = getattr(self, name)
            fits = is_real(value) and 0 <= value <= most
            check_rules(type(self).__name__, **{name: (value, fits, f"be a number in [0, {most}]")})

    def _given_second_moment(self, n_features: int) -> Matrix:
        """Check a given second moment, and append the constant where it is that of x alone."""
        matrix = floats(self.second_moment)
        matrix = np.empty(0) if matrix is None else matrix
        if matrix.shape == (n_features, n_features):
            matrix = linalg.block_diag(matrix, 1.0)
        fits = matrix.shape == (n_features + 1,) * 2 and np.isfinite(matrix).all()
        rule = (
            f"be a symmetric matrix of finite numbers for {n_features} features or for them and "
            "the constant 1"
        )
        is_moment = fits and np.allclose(matrix, matrix.T)
        check_rules(type(self).__name__, second_moment=(self.second_moment, is_moment, rule))
        return matrix

    def _scores(self, X: Container) -> Matrix:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self._linear(X)

    def _linear(self, X: Container) -> Matrix:
        return np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True)) + self.intercept_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class MomentClassifier(ClassifierMixin, MomentModel):
    """Classify by least squares on class codes, with one moment learned from the records.

    Each class has a code, a corner of a simplex around 0. The moment is the mean of code times
    (x, c), with a constant c. With the inverse of the second moment of (x, c) it predicts the code.
    Few private numbers of a small sensitivity are needed; the rest can be public.

    Parameters
    ----------
    constant : float in [0, 1e100], default=0.5
        The constant c. A larger one costs more noise in all numbers, and leaves less in the
        intercept; 0 leaves the intercept out.
    shrinkage : float in [0, 1], default=0.1
        Share by which the second moment is shrunk toward an isotropic one; 0 is least squares. More
        noise calls for a larger share.
    second_moment : array-like of shape (n_features + 1, n_features + 1), or None, default=None
        Public mean of (x, 1)(x, 1)^T; or of x x^T, shape (n_features, n_features), where features
        have mean 0. None takes that of the records of fit: for a private fit those of the oracle.
        Where the sensitivity is known on paper None takes an isotropic one; of a response, or of
        two classes with no `refit_on`, one of released numbers: all of it where a bound on the L2
        norm counts, up to 64 columns and as many numbers as the mechanism takes, or else its trace
        and the mean of x.
    classes : array-like of shape (n_classes,) or None, default=None
        The class labels; None takes those that occur in fit.
    refit_on : array-like, sparse or data frame of shape (n_public, n_features), or None, \
            default=None
        Public records without labels, as this step of a pipeline sees them. The model labels them
        and takes the coefficients of a fit to these labels, which averages noise.

    Attributes
    ----------
    moment_ : ndarray of shape (n_classes - 1, n_features + 1)
        The released mean of code times (x, c), without its last column where c is 0.
    second_moment_ : ndarray of shape (n_features + 1, n_features + 1)
        The mean of (x, 1)(x, 1)^T, given or computed, before shrinkage.
    shrinkage_ : float
        The share by which it is shrunk; 0 where only its isotropic part is known, or where it is
        released and already shrunk around the mean of x.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the decision function; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Its intercepts.
    classes_ : ndarray of shape (n_classes,)
        The class labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdp import MomentClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MomentClassifier(shrinkage=0).fit(X, y)
    >>> model.moment_.shape, round(model.score(X, y), 2)
    ((2, 5), 0.85)
    """

    classes_: NDArray

    def __init__(
        self,
        *,
        constant: float = 0.5,
        shrinkage: float = 0.1,
        second_moment: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        refit_on: Container = None,
    ):
        self.constant = constant
        self.shrinkage = shrinkage
        self.second_moment = second_moment
        self.classes = classes
        self.refit_on = refit_on

    def _codes(self, y: NDArray) -> Matrix:
        """Learn the labels, and return the code of each."""
        check_classification_targets(y)
        self.classes_ = np.unique(y if self.classes is None else np.asarray(self.classes))
        if len(self.classes_) < 2:
            raise ValueError(
                "MomentClassifier needs at least two classes. Got one class; declare the labels "
                "with the 'classes' parameter where not all of them occur."
            )
        places = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        if not np.array_equal(self.classes_[places], y):
            raise ValueError("y holds a label that is not among 'classes' of MomentClassifier.")
        return class_codes(len(self.classes_))[places]

    def derive(self) -> None:
        """Compute the coefficients from `moment_` and `second_moment_`, or from public records."""
        codes = class_codes(len(self.classes_))
        scores = codes @ self._solve()
        if len(codes) == 2:
            scores = scores[1:] - scores[:1]
        self.coef_, self.intercept_ = scores[:, :-1], scores[:, -1]
        if self.refit_on is not None:
            self._refit()

    def _refit(self) -> None:
        """Take the coefficients of a model fitted to public records and the labels given here."""
        rows = check_array(
            self.refit_on, accept_sparse="csr", dtype=np.float64, input_name="refit_on"
        )
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                "The 'refit_on' parameter of MomentClassifier must have as many columns as X, "
                f"{self.n_features_in_}. Got {rows.shape[1]}."
            )
        parameters = self.get_params() | {"classes": self.classes_, "refit_on": None}
        fitted = MomentClassifier(**parameters).fit(rows, self._answers(self._linear(rows)))
        self.coef_, self.intercept_ = fitted.coef_, fitted.intercept_

    def _answers(self, scores: NDArray) -> NDArray:
        best = scores[:, 0] > 0 if len(self.classes_) == 2 else scores.argmax(axis=1)
        return self.classes_[np.asarray(best, dtype=np.intp)]

    def decision_function(self, X: Container) -> Matrix:
        """Score each class by the predicted code; of two the second one, less the first."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores


class MomentRegressor(RegressorMixin, MomentModel):
    """Least squares, with one moment learned from the records.

    The moment is the mean of t times (x, c), with a constant c and t the response, scaled to
    [-1, 1] if a range of it is declared.

    Parameters
    ----------
    constant : float in [0, 1e100], default=0.5
        The constant c. With 0 no intercept is learned: it is 0, or the middle of `y_range`.
    shrinkage : float in [0, 1], default=0.0
        Share by which the second moment is shrunk toward an isotropic one; 0 is least squares.
    second_moment : array-like of shape (n_features + 1, n_features + 1), or None, default=None
        As for :class:`MomentClassifier`.
    y_range : pair of float, or None, default=None
        Lowest and highest response, to which responses are clipped. Public. None leaves responses
        as they are, and then no sensitivity is known on paper.

    Attributes
    ----------
    moment_ : ndarray of shape (1, n_features + 1)
        The released mean of t times (x, c), without its last column where c is 0.
    second_moment_ : ndarray of shape (n_features + 1, n_features + 1)
        The mean of (x, 1)(x, 1)^T, given or computed, before shrinkage.
    shrinkage_ : float
        The share by which it is shrunk; 0 where only its isotropic part is known.
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import MomentRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(MomentRegressor().fit(X, y).score(X, y), 3)
    0.518
    """

    def __init__(
        self,
        *,
        constant: float = 0.5,
        shrinkage: float = 0.0,
        second_moment: ArrayLike | None = None,
        y_range: tuple[float, float] | None = None,
    ):
        self.constant = constant
        self.shrinkage = shrinkage
        self.second_moment = second_moment
        self.y_range = y_range

    def _codes(self, y: NDArray) -> Matrix:
        """Return the responses, scaled to [-1, 1] and clipped where a range is declared."""
        middle, half = self._scale()
        scaled = (np.asarray(y, dtype=np.float64) - middle) / half
        return (scaled if self.y_range is None else np.clip(scaled, -1, 1))[:, None]

    def derive(self) -> None:
        middle, half = self._scale()
        scores = half * self._solve()[0]
        self.coef_, self.intercept_ = scores[:-1], float(scores[-1] + middle)

    def _scale(self) -> tuple[float, float]:
        """Return middle and half the width of the range of the response."""
        if self.y_range is None:
            return 0.0, 1.0
        low, high = map(float, self.y_range)
        return low + (high - low) / 2, (high - low) / 2

    def _check(self) -> None:
        super()._check()
        try:
            low, high = map(float, (-1, 1) if self.y_range is None else self.y_range)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        fits = 0 < (high - low) / 2 < np.inf  # a comparison with NaN is false
        rule = "be a pair of finite numbers, the lower one first"
        check_rules("MomentRegressor", y_range=(self.y_range, fits, rule))
