"""The public fit of a known sensitivity: its shape is that of the private fit."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator
from skdp.core.dataset import Dataset
from skdp.estimators.public_fit import synthetic_dataset


def fitted(estimator, X, y=None, **options):
    model = PrivateEstimator(
        estimator, mechanism=LaplaceMechanism(1.0), sensitivity=0.1, random_state=0, **options
    )
    return model.fit(X, y)


# The shape of each depends on the number of records, here or at other sizes.
SHAPED = [
    (QuantileTransformer(), 250, 3),
    (QuantileTransformer(), 1200, 2),
    (PCA(), 150, 120),
    (PCA(120), 140, 130),
    (KMeans(120, n_init=1, random_state=0), 130, 2),
    (GaussianMixture(105, covariance_type="spherical", max_iter=2, random_state=0), 220, 2),
    (make_pipeline(StandardScaler(), QuantileTransformer()), 230, 2),
]


@pytest.mark.filterwarnings("ignore::UserWarning:sklearn")  # more quantiles than records
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # on few
@pytest.mark.parametrize(("estimator", "n_samples", "n_features"), SHAPED, ids=str)
def test_a_known_sensitivity_serves_every_size(estimator, n_samples, n_features):
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    released = fitted(estimator, X).estimator_
    assert released.transform(X).shape[0] == n_samples if hasattr(released, "transform") else True
    if isinstance(estimator, QuantileTransformer):
        assert released.n_quantiles_ == min(1000, n_samples)


def test_members_and_many_classes_have_the_private_size():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), np.arange(300) % 130
    model = fitted(LinearDiscriminantAnalysis(), X, y, classes=range(130))
    assert model.estimator_.coef_.shape == (130, 4)
    mapped = make_pipeline(Nystroem(n_components=140), Ridge())
    assert fitted(mapped, X, X[:, 0]).estimator_[-1].coef_.shape == (140,)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_public_fits_stay_small(kind):
    """A dense table of this shape would take 20 gigabytes."""
    X = kind((1_000_000, 5000), dtype=np.float32)
    synthetic = synthetic_dataset(Dataset(X), None).X
    assert type(synthetic) is type(X)
    assert synthetic.shape == X.shape
    assert synthetic.dtype == np.float32
    entries = synthetic.tocsc()
    assert entries.nnz <= 1_000_000
    assert np.diff(entries.indptr).min() >= 1
    assert np.diff(synthetic.tocsr().indptr).min() >= 1


def test_synthetic_records_have_every_class_and_the_private_number():
    X, y = np.zeros((7, 2)), np.zeros(7)
    features, labels = synthetic_dataset(Dataset(X, y), [np.arange(3)]).parts
    assert features.shape == (7, 2)
    assert np.bincount(labels).tolist() == [3, 2, 2]
    with pytest.raises(ValueError, match="as many records as there are classes, which is 8"):
        synthetic_dataset(Dataset(X, y), [np.arange(8)])
