"""Principal components of public records, as a step in front of an estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.core.checks import is_whole, shown
from skdp.core.dataset import validate_rows
from skdp.core.types import Container, Matrix


class PublicComponents(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Replace the columns by a few principal components of public records.

    With fewer columns a model has fewer numbers, and each gets less noise. Columns are brought to
    mean 0 and variance 1 by the public records, then the components with the largest public
    variance are kept. Nothing is learned from private records.

    In a :class:`PrivateEstimator` the plan learns the components, and says how many they are. It
    fits the steps in front to `X_public` and sends these records through them. A StandardScaler in
    front is not needed, and its numbers would get noise too.

    Parameters
    ----------
    X_public : array-like, sparse or data frame of shape (n_public, n_features)
        Public records, as they enter the pipeline that this is a step of. They do not stay in a
        released estimator, except in a `student`, or frozen together with this step. In a student,
        and outside a PrivateEstimator, they must be as they enter this step.
    n_components : int of at least 1, or None, default=None
        Number of components. A student needs it. None leaves it to the plan of a PrivateEstimator:
        sqrt(n epsilon / (5 K)), rounded, for n private records and K classes, or K = 2 for a
        regression: from min(2, K - 1) to 40, and no more than there are columns.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The components, each a row of length 1, by falling variance.
    mean_ : ndarray of shape (n_features,)
        Means of the public records.
    scale_ : ndarray of shape (n_features,)
        Standard deviations of the public records; 1 where a column is constant.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where the public records have them.

    See Also
    --------
    ClipNorm : Clips what comes out, for a sensitivity known on paper.

    Notes
    -----
    A few components may leave out what a response depends on: compare the expected score of a plan
    without this step. For components of columns in their own units, put a public PCA in
    scikit-learn's FrozenEstimator.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import LaplaceMechanism, PrivateEstimator, PublicComponents
    >>> from skdp import RandomTaskOracle, SensitivitySampler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_public, X, y = X[::2], X[1::2], y[1::2]
    >>> oracle = RandomTaskOracle(X_public, classes=[0, 1], least_share=0.3)
    >>> model = PrivateEstimator(
    ...     make_pipeline(PublicComponents(X_public), LogisticRegression(C=0.01)),
    ...     mechanism=LaplaceMechanism(epsilon=0.3),
    ...     sensitivity=SensitivitySampler(oracle, gamma=0.1, random_state=0),
    ... )
    >>> print(model.plan(n_samples=len(X)))
    Plan: Pipeline(PublicComponents, LogisticRegression), 284 private records
      ...
      components      3 of 30: sqrt(n epsilon / 10), for n = 284 and epsilon = 0.3
      ...
    """

    n_features_in_: int
    description_: str

    def __init__(self, X_public: Container, n_components: int | None = None):
        self.X_public = X_public
        self.n_components = n_components

    def fit(self, X: Container, y: Container = None) -> Self:
        """Learn the components from the public records; of X only the columns are compared."""
        if self.n_components is None:
            raise ValueError(
                "The 'n_components' parameter of PublicComponents must be given outside the plan "
                "of a PrivateEstimator, which sets it by the number of records and epsilon. Got "
                "None. Pass a number of components."
            )
        public = self._public_rows()
        if not (is_whole(self.n_components) and 1 <= self.n_components <= min(public.shape)):
            raise ValueError(
                "The 'n_components' parameter of PublicComponents must be an integer from 1 to "
                f"{min(public.shape)}, the number of columns or of public records. Got "
                f"{shown(self.n_components)}."
            )
        from sklearn.decomposition import PCA  # their import takes time
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(public)
        found = PCA(self.n_components, svd_solver="full").fit(scaler.transform(public))
        self.components_, self.mean_, self.scale_ = found.components_, scaler.mean_, scaler.scale_
        self._rows(X)
        return self

    def transform(self, X: Container) -> Matrix:
        """Return the components of records, one row each."""
        check_is_fitted(self)
        weights = (self.components_ / self.scale_).T
        return safe_sparse_dot(self._rows(X), weights, dense_output=True) - self.mean_ @ weights

    @property
    def _n_features_out(self) -> int:
        """Number of components, of which scikit-learn makes names."""
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _public_rows(self) -> Matrix:
        """Return the public records in doubles, and note their columns."""
        options: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "ensure_min_samples": 2}
        try:
            X = validate_data(self, self.X_public, dtype=np.float64, **options)
        except ValueError as error:
            raise ValueError(
                "The 'X_public' parameter of PublicComponents must hold records of finite numbers. "
                f"Got: {error}. Encode words and fill gaps by a step in front, such as a "
                "ColumnTransformer with a OneHotEncoder and a SimpleImputer."
            ) from None
        return X.toarray() if sparse.issparse(X) else X

    def _rows(self, X: Container) -> Container:
        """Return records in doubles, in the columns of the public ones."""
        return validate_rows(self, X, accept_sparse=("csr", "csc"), dtype=np.float64)
