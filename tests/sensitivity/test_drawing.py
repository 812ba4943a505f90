"""The oracle protocol: adapters, descriptions and the checks on what is drawn."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.exceptions import NotFittedError
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.neighbors import KernelDensity

from skdp import SensitivitySampler, UniformOracle
from skdp.core.dataset import Dataset
from skdp.core.oracle import has_independent_records
from skdp.core.schema import DatasetForm
from skdp.sensitivity.adapters import as_oracle, describe_oracle
from skdp.sensitivity.drawing import draw


def records(n_samples, rng):
    return rng.normal(size=(n_samples, 2))


class Simulator:
    def __call__(self, n_samples, rng):
        return rng.normal(size=(n_samples, 2))

    def sample(self, n_samples):
        raise AssertionError("a callable is called")


class Seeded:
    """A density of a third party that takes a Generator and returns a frame."""

    def sample(self, n_samples, rng):
        return pd.DataFrame({"a": rng.normal(size=n_samples)})


class Unseedable:
    def sample(self, n_samples):
        return np.zeros((n_samples, 1))


TWO_CLUSTERS = np.r_[np.full((30, 2), -50.0), np.full((30, 2), 50.0)]
TWO_CLUSTERS += np.random.default_rng(0).normal(size=TWO_CLUSTERS.shape)


def mixture(cls=GaussianMixture):
    return cls(n_components=2, random_state=3).fit(TWO_CLUSTERS)


ADAPTED = {
    "norm": (stats.norm(1, 2), 1),
    "poisson": (stats.poisson(3), 1),
    "multivariate_normal": (stats.multivariate_normal([0, 1, 2]), 3),
    "dirichlet": (stats.dirichlet([1, 2, 3]), 3),
    "gaussian_kde": (stats.gaussian_kde(TWO_CLUSTERS.T), 2),
    "rv_histogram": (stats.rv_histogram(np.histogram([1, 2, 2, 3]))(), 1),
    "GaussianMixture": (mixture(), 2),
    "BayesianGaussianMixture": (mixture(BayesianGaussianMixture), 2),
    "KernelDensity": (KernelDensity().fit(TWO_CLUSTERS), 2),
    "Seeded": (Seeded(), 1),
}


@pytest.mark.loop("name", ADAPTED)
def test_adapters_draw_reproducibly_and_leave_the_source_alone(name):
    source, n_features = ADAPTED[name]
    oracle = as_oracle(source)
    before = pickle.dumps(source)
    first = oracle(7, np.random.default_rng(5))
    assert first.shape == (7, n_features)
    np.testing.assert_array_equal(oracle(7, np.random.default_rng(5)), first)
    assert not np.array_equal(oracle(7, np.random.default_rng(6)), first)
    assert pickle.dumps(source) == before
    again = pickle.loads(pickle.dumps(oracle))
    np.testing.assert_array_equal(again(7, np.random.default_rng(5)), first)
    rng = np.random.default_rng(5)
    assert not np.array_equal(oracle(7, rng), oracle(7, rng))  # the generator moves on


@pytest.mark.loop("name", [name for name in ADAPTED if name != "rv_histogram"])
def test_adapters_are_described_by_name(name):
    oracle = as_oracle(ADAPTED[name][0])
    assert describe_oracle(oracle) == name
    assert repr(oracle) == f"as_oracle({name})"
    assert has_independent_records(oracle) == (name != "Seeded")
    assert oracle.classes_ is None
    assert oracle(1, np.random.default_rng(0)).shape == (1, ADAPTED[name][1])
    assert as_oracle(oracle) is oracle


def last_in_first_cluster(sample, n_draws=300):
    rng = np.random.default_rng(21)
    return sum(sample(11, rng)[-1, 0] < 0 for _ in range(n_draws))


@pytest.mark.parametrize("cls", [GaussianMixture, BayesianGaussianMixture])
def test_the_order_of_mixture_records_means_nothing(cls):
    """The last record is of either component half of the time.

    Two-sided binomial test at level 1e-6. scikit-learn's own order, by component, fails it.
    """
    source = mixture(cls)
    share = np.mean(TWO_CLUSTERS[:, 0] < 0)
    count = last_in_first_cluster(as_oracle(source))
    assert stats.binomtest(count, 300, share).pvalue > 1e-6
    count = last_in_first_cluster(lambda n, rng: source.sample(n)[0])
    assert stats.binomtest(count, 300, share).pvalue < 1e-6


def test_describe_oracle():
    assert describe_oracle(records) == "records"
    assert describe_oracle(functools.partial(records)) == "records"
    assert describe_oracle(Simulator()) == "Simulator"
    assert describe_oracle(Simulator().__call__) == "Simulator.__call__"
    described = Simulator()
    described.description = "loans of 2019"
    assert describe_oracle(described) == "loans of 2019"


@pytest.mark.loop(
    ("thing", "message"),
    [
        (np.zeros((3, 2)), r"Got ndarray. To resample a public table, wrap it: PublicDataOracle"),
        (pd.DataFrame({"a": [1]}), "Got DataFrame. To resample a public table"),
        (sparse.csr_array((2, 2)), "Got csr_array. To resample a public table"),
        (None, "Got NoneType"),
        (SensitivitySampler(UniformOracle([(0, 1)])), "Got a SensitivitySampler: pass the oracle"),
        (GaussianMixture, "an object, not a class. Got GaussianMixture itself"),
        (stats.norm, "must be a frozen distribution.* Got norm_gen. Freeze it"),
        (stats.multivariate_normal, "must be a frozen"),
        (stats.dirichlet_multinomial([1, 2], 3), "Got dirichlet_multinomial"),
        (lambda n: n, r"callable as oracle\(n_samples, rng\). Its signature is \(n\)"),
        (lambda n, rng, more: n, "Its signature is"),
        (Unseedable(), "The draws of Unseedable cannot be reproduced"),
        (GaussianMixture(), "is not fitted. Fit it on public records first"),
        (KernelDensity(), "is not fitted. Fit it on public records first"),
    ],
)
def test_as_oracle_refuses(thing, message):
    with pytest.raises((TypeError, NotFittedError), match=message):
        as_oracle(thing)


def test_draw_notes_which_oracle_failed():
    def broken(n_samples, rng):
        raise ZeroDivisionError("no records today")

    with pytest.raises(ZeroDivisionError, match="no records today") as caught:
        draw(as_oracle(broken), 4, np.random.default_rng(0))
    assert "broken when asked for n_samples=4" in caught.value.__notes__[0]


FRAME = pd.DataFrame({"age": [1.0, 2.0], "sex": ["f", "m"]})
X2 = np.zeros((2, 2))


def drawn(dataset, reference=None, full=True):
    """Draw a given dataset as records of the form of another."""
    schema = None if reference is None else DatasetForm.of(Dataset(*reference))

    def f(n_samples, rng):
        return dataset

    return draw(as_oracle(f), 2, np.random.default_rng(0), schema=schema, full=full)


@pytest.mark.loop(
    ("dataset", "reference"),
    [
        ((X2,), (np.ones((9, 2)),)),
        ((X2, [0, 1]), (np.ones((9, 2)), np.ones(9))),
        ((FRAME,), (FRAME,)),
        ((X2,), (FRAME.assign(sex=1),)),  # an array can be given the names of the data
        ((np.zeros(2),), (np.ones(9),)),
        ((["one text", "another"],), (["a", "b", "c"],)),
    ],
)
def test_draw_brings_records_into_the_form_of_others(dataset, reference):
    assert np.isnan(drawn(np.full((2, 1), np.nan), full=False).X).all()  # counts alone are checked
    assert DatasetForm.of(drawn(dataset, reference)) == DatasetForm.of(Dataset(*reference))


@pytest.mark.loop(
    ("dataset", "reference", "message"),
    [
        ((X2,), (X2, [0, 1]), "The oracle .* returned X. It must return X and y"),
        ((X2, [0, 1]), (X2,), "The oracle .* returned X and y. It must return X, "),
        ((X2,), (np.zeros((2, 3)),), "its X has 2 columns, and that of the data has 3 columns"),
        ((np.zeros((2, 2)),), (np.zeros(2),), "its X has 2 columns, .* data has 1 dimension"),
        ((FRAME,), (FRAME[["sex", "age"]],), "its X has the columns in another order"),
        ((FRAME,), (FRAME[["age"]],), r"its X has the columns \['sex'\] besides"),
        ((FRAME,), (X2,), "its X holds objects that are no numbers"),
        ((X2, [0]), None, "returned 1 responses. It must return n_samples=2"),
        ((np.zeros((3, 2)),), None, "returned 3 records. It must return n_samples=2"),
        ((FRAME.assign(age=np.inf),), None, "X with a number .* in column 'age'. Leave"),
        ((X2, [0.0, np.nan]), None, "returned y with a number"),
        ((X2, ["a", "b"]), (X2, [0, 1]), "its y holds <U1, and that of the data int64"),
        (None, None, r"What the oracle .* returns must be X or a tuple"),
        (1.0, None, "Got float"),
    ],
)
def test_draw_refuses_what_cannot_stand_in_for_the_data(dataset, reference, message):
    with pytest.raises((TypeError, ValueError), match=message):
        drawn(dataset, reference)


@pytest.mark.parametrize("kind", ["dok", "lil"])
def test_sparse_draws_come_by_rows_like_private_records(kind):
    table = sparse.random(20, 3, density=0.3, random_state=0, format="csr")
    drawn = table.asformat(kind)
    X = draw(as_oracle(lambda n, rng: drawn), 20, np.random.default_rng(0)).X
    assert X.format == "csr"
    np.testing.assert_array_equal(X.toarray(), table.toarray())
