"""Oracles: what one need not say, and what a plain function is taken for."""

import functools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity

from skdp import (
    LaplaceMechanism,
    Oracle,
    PrivacyLeakWarning,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    release,
)
from skdp.core.dataset import Dataset
from skdp.core.oracle import has_independent_records
from skdp.oracles.adapters import as_oracle
from skdp.oracles.trial import check_is_public

X = np.random.default_rng(0).uniform(size=(20, 1))


class Incomes(Oracle):
    def __init__(self, mean=1.0):
        self.mean = mean

    def __call__(self, n_samples, rng):
        return self.mean * rng.exponential(size=(n_samples, 1))


class Independent(Incomes):
    independent_records = True


class Inherits(Independent):
    pass


def labeled(n_samples, rng):
    labels = rng.permutation(np.resize(["no", "yes"], n_samples))
    return rng.normal(size=(n_samples, 1)) + (labels == "yes")[:, None], labels


def test_what_an_oracle_does_not_say():
    oracle = Incomes()
    assert as_oracle(oracle) is oracle
    assert oracle.description == "Incomes"
    assert oracle.classes_ is None
    assert not has_independent_records(oracle)
    estimate = SensitivitySampler(oracle, gamma=0.2).sample(np.mean, 5, "l1")
    assert estimate.oracle == "Incomes"


def test_independence_is_claimed_and_not_inherited():
    assert has_independent_records(Independent())
    assert not has_independent_records(Inherits())
    claims = Incomes()
    claims.independent_records = True
    assert has_independent_records(claims)


def test_independence_is_not_copied_by_a_decorator():
    def records(n_samples, rng):
        return rng.uniform(size=(n_samples, 1))

    records.independent_records = True

    @functools.wraps(records)
    def shifted(n_samples, rng):
        return records(n_samples, rng) + rng.normal()

    assert has_independent_records(as_oracle(records))
    assert not has_independent_records(as_oracle(shifted))


@pytest.mark.parametrize("description", [None, 3])
def test_an_oracle_without_a_name_is_refused(description):
    """A guarantee would not say what it rests on."""
    oracle = Incomes()
    oracle.description = description
    with pytest.raises(TypeError, match="'description' of the oracle Incomes must be a string"):
        SensitivitySampler(oracle).sample(np.mean, 5, "l1")


def test_an_oracle_must_say_how_it_draws():
    class Odd(Oracle):
        def __call__(self, n_samples):
            return X

    with pytest.raises(TypeError, match="abstract"):
        type("Silent", (Oracle,), {})()
    with pytest.raises(TypeError, match="The oracle Odd must be callable as oracle"):
        as_oracle(Odd())


def test_the_labels_of_a_function_count():
    """Without them a draw that lacks a class would make a public fit of the others."""

    def oracle(n_samples, rng):
        return labeled(n_samples, rng)

    oracle.classes_ = np.array(["maybe", "no", "yes"])
    model = PrivateEstimator(
        LogisticRegression(),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(oracle, gamma=0.3, random_state=0),
    )
    with pytest.raises(ValueError, match=r"The oracle must yield every class of .*maybe"):
        model.plan(20)
    oracle.classes_ = np.array(["no", "yes"])
    assert [list(labels) for labels in model.plan(20).classes] == [["no", "yes"]]


class Holds:
    def __init__(self, thing):
        self.thing = thing

    def __call__(self, n_samples, rng):
        return rng.uniform(size=(n_samples, 1))


class ReadsGlobal(Oracle):
    def __call__(self, n_samples, rng):
        return X[rng.integers(len(X), size=n_samples)]


class Tabled(Oracle):
    def __call__(self, n_samples, rng):
        return self.table[rng.integers(20, size=n_samples)]


class HasProperty(Tabled):
    @property
    def table(self):
        return X


class HasTable(Tabled):
    table = X


class HasCopy(Tabled):
    table = X.copy()


def has_attribute(n_samples, rng):
    return has_attribute.table[rng.integers(20, size=n_samples)]


has_attribute.table = X


def with_default(n_samples, rng, table=X):
    return table[rng.integers(20, size=n_samples)]


LABELED = PublicDataOracle(np.ones((20, 1)), X[:, 0])
HOLDERS = [Holds(X), Holds([X]), Holds((X, None)), KernelDensity().fit(X), HasProperty()]
HOLDERS += [HasTable(), has_attribute, PublicDataOracle(X), PublicDataOracle(X[::-1])]
HOLDERS += [with_default, functools.partial(with_default, table=X), LABELED]


@pytest.mark.loop("oracle", HOLDERS)
def test_private_records_are_found_in_an_oracle(oracle):
    check_is_public(as_oracle(oracle), Dataset(X.copy()))
    with pytest.raises(ValueError, match="holds the private records") as caught:
        check_is_public(as_oracle(oracle), Dataset(X))
    assert str(X[0, 0])[:6] not in str(caught.value)
    if oracle is not LABELED:
        noise = {"mechanism": LaplaceMechanism(1.0), "sensitivity": SensitivitySampler(oracle)}
        with pytest.raises(ValueError, match="holds the private records"):
            release(np.mean, X, **noise)


def reads_a_part(n_samples, rng):
    return X[:10][rng.integers(10, size=n_samples)]


def reads_the_width(n_samples, rng):
    return rng.normal(size=(n_samples, X.shape[1]))


def test_an_oracle_may_read_the_other_part_of_a_table_and_have_a_copy():
    check_is_public(as_oracle(reads_a_part), Dataset(X[10:]))
    check_is_public(HasCopy(), Dataset(X))


@pytest.mark.loop("oracle", [ReadsGlobal(), reads_a_part, reads_the_width])
def test_an_oracle_that_reads_the_private_records_is_pointed_out(oracle):
    with pytest.warns(PrivacyLeakWarning, match="reads the variable 'X'"):
        check_is_public(as_oracle(oracle), Dataset(X))
