"""The owner's look at private records beside an oracle's."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import skdp
from skdp import PublicDataOracle, UniformOracle, compare

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(400, 2))


def test_alike_and_unlike_columns():
    private = np.column_stack([X[:, 0], 100 * X[:, 1]])
    found = compare(UniformOracle([(0, 1), (0, 1)]), private, random_state=0)
    np.testing.assert_allclose(found.drawn, [[0, 1], [0, 1]], atol=0.01)
    np.testing.assert_array_equal(found.private, np.array([private.min(0), private.max(0)]).T)
    assert found.outside[0] == 0
    assert found.outside[1] == pytest.approx(0.99, abs=0.03)
    assert found.distance[0] < 0.12
    assert found.distance[1] > 0.95


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    public = RNG.normal(size=(60, 1)).round(1)
    found = compare(PublicDataOracle(public), X[:, :1].copy(), random_state=0)
    expected = stats.ks_2samp(public[:, 0], X[:, 0]).statistic
    assert found.distance[0] == pytest.approx(expected, abs=0.04)  # of 10,000 draws


def test_an_oracle_of_few_records_is_asked_for_no_more():
    def some_of_few(n_samples, rng):
        return rng.choice(X, n_samples, replace=False)  # fails if there are fewer

    found = compare(some_of_few, X[:300].copy(), random_state=0)
    np.testing.assert_array_equal(found.drawn, np.array([X.min(0), X.max(0)]).T)


@pytest.mark.parametrize("kind", ["frame", "sparse"])
def test_other_containers(kind):
    if kind == "frame":
        private = pd.DataFrame({"age": X[:, 0], "town": "a", "income": [np.nan, *X[1:, 1]]})
        oracle, names = PublicDataOracle(private.iloc[:50].copy()), ["age", "income"]
    else:
        private = sparse.csr_array(np.where(X > 0.5, X, 0))
        oracle, names = PublicDataOracle(private[:50].copy()), [0, 1]
    found = compare(oracle, private, random_state=0)
    assert found.columns == names
    assert (found.distance < 0.3).all()


def test_it_says_that_it_is_private_and_cannot_be_pickled():
    found = compare(UniformOracle([(0, 1)]), X[:, :1].copy())
    for said in (str(found), repr(found)):
        assert "do not show this to others, and do not tune the release by it" in " ".join(
            said.split()
        )
    for leave in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            leave(found)
    assert skdp.compare is compare


def test_private_records_are_no_oracle():
    with pytest.raises(ValueError, match="holds the private records"):
        compare(PublicDataOracle(X), X)
