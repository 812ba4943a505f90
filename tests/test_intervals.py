"""Between what the exact model would predict: intervals hold as often as they say."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdp import (
    LaplaceMechanism,
    Mechanism,
    PrivacyGuarantee,
    PublicDataOracle,
    UniformOracle,
    load,
    plan_release,
)
from skdp.audit import find_leaks
from skdp.bounds import mean_bound
from skdp.core.geometry import Geometry
from tests import helpers
from tests.helpers import sampler

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
X_PUBLIC, Y_PUBLIC, X, y = X[::2], y[::2], X[1::2], y[1::2]
N = 150


def private(estimator, **options):
    return helpers.private(
        estimator,
        **{
            "mechanism": LaplaceMechanism(3.0),
            "sensitivity": sampler(X_PUBLIC, Y_PUBLIC, n_pairs=None),
        }
        | options,
    )


def without_oracle():
    """A release with a code, by an estimate that needs no oracle and has none."""
    drawn = sampler(X_PUBLIC, Y_PUBLIC, n_pairs=None).set_params(clip=None)
    estimate = private(Ridge(), sensitivity=drawn).fit(X, y).sensitivity_
    return private(Ridge(), sensitivity=estimate.with_prior(None)).fit(X, y)


def share_inside(model, of, responses, level=0.9, n_releases=60):
    """How often exact predictions are inside of the intervals that one simulation gives."""
    plan = model.plan(N, like=(X[:2], y[:2]))
    rng = np.random.default_rng(0)
    released = plan.execute(X[:N], y[:N], random_state=0)
    ends = released.predict_interval(X, level, n_draws=99, random_state=0)
    low, high = (ends - released.value.predict(X)[:, None]).T
    off = []
    for _ in range(n_releases):
        rows = rng.choice(len(of), N)
        exact = plan.target(of[rows], responses[rows], seed=0)
        off.append(exact - plan.mechanism.release(exact, plan.sensitivity.value, rng))
    off = np.array(off) @ np.c_[X, np.ones(len(X))].T  # of the predictions, which are linear
    return np.mean((low <= off) & (off <= high))


def test_with_a_basis_the_level_is_met_on_any_data():
    model = private(Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=5.0)
    assert 0.87 < share_inside(model, X, 1e4 * y) < 0.93
    assert 0.44 < share_inside(model, X, -y, level=0.5) < 0.56


def test_with_a_code_the_draws_are_as_far_off_as_the_standard_errors_say():
    """These allow for the shift, which datasets of the oracle do not have."""
    plan = private(Ridge(), mechanism=LaplaceMechanism(3.0, shift=1.0)).plan(N, like=(X[:2], y[:2]))
    released = plan.execute(X[:N], y[:N], random_state=0)
    models = released.plausible_models(n_draws=99, random_state=0)
    off = [model.coef_ - released.value.coef_ for model in models]
    assert (np.std(off, axis=0) >= 0.95 * released.standard_errors["coef_"]).all()


@pytest.mark.slow
def test_with_a_code_the_level_is_met_on_data_of_the_oracle_and_by_the_shift_on_others():
    strict = private(Ridge(), mechanism=LaplaceMechanism(2.0, shift=0.0))
    assert 0.86 < share_inside(strict, X_PUBLIC, Y_PUBLIC) < 0.94
    shuffled = X, y[::-1]  # responses that belong to other records
    trusting_less = private(Ridge(), mechanism=LaplaceMechanism(2.0))
    assert share_inside(strict, *shuffled) < 0.86 < share_inside(trusting_less, *shuffled)


def test_an_interval_is_repeated_by_its_seed_and_shrinks_with_the_noise():
    model, again = (private(Ridge()).fit(X, y) for _ in range(2))
    options = {"n_draws": 39, "random_state": 1}
    ends = model.predict_interval(X[:5], **options)
    assert ends.shape == (5, 2)
    assert np.array_equal(model.predict_interval(X[:5], **options), ends)
    drawn = again.predict_interval(X[:5], n_draws=99)
    assert np.array_equal(again.predict_interval(X[:5], n_draws=99), drawn)  # drawn once
    assert np.array_equal(again.predict_interval(X[:5], **options), ends)  # but for another seed
    exact = private(Ridge(), mechanism=LaplaceMechanism(np.inf)).fit(X, y)
    ends = exact.predict_interval(X[:5], **options)
    assert np.allclose(ends, exact.predict(X[:5])[:, None], rtol=1e-9)
    both = private(LinearRegression(), sensitivity=1.0).fit(X, np.c_[y, y])
    assert both.predict_interval(X[:5], **options).shape == (5, 2, 2)


def test_labels_are_stable_where_noise_does_not_decide():
    X, y = load_iris(return_X_y=True)
    model = private(LogisticRegression(), sensitivity=0.5, classes=[0, 1, 2]).fit(X, y)
    stable = model.predict_stability(X, n_draws=99, random_state=0)
    first = y == 0  # the one that is far from the others
    assert stable[first].mean() > 0.95
    assert stable[~first].mean() < stable[first].mean() - 0.05
    assert ((stable >= 0) & (stable <= 1)).all()
    with pytest.raises(ValueError, match="'n_draws'"):
        model.predict_stability(X, n_draws=0)


class Clipped(Mechanism):
    """Noise on a clipped value: released zeros would not tell what it is off by."""

    geometry = Geometry(1)

    def release(self, value, sensitivity, rng):
        return LaplaceMechanism(1.0).release(np.maximum(value, 100), sensitivity, rng)

    def guarantee(self, gamma=0.0):
        return PrivacyGuarantee(epsilon=1.0, gamma=gamma)


def test_a_mechanism_of_which_nothing_is_known_is_simulated_on_public_values():
    model = private(Ridge(), mechanism=Clipped()).fit(X, y)
    low, high = model.predict_interval(X[:3], n_draws=39, random_state=0).T
    exact = Ridge().fit(X, y).predict(X[:3])
    assert ((low < exact) & (exact < high)).all()


@pytest.mark.parametrize(("how", "n_columns"), [("on paper", 1), ("by a code", 2)])
def test_a_plain_statistic_has_intervals_too(n_columns, how, tmp_path):
    """Of a release that was loaded, the same; forty releases, of one number each or of two."""
    records, bounds = np.random.default_rng(0).uniform(size=(80, n_columns)), [(0, 1)] * n_columns
    function = np.mean if n_columns == 1 else lambda X: X.mean(axis=0)
    known = mean_bound(80, ranges=bounds)
    sensitivity = known if how == "on paper" else sampler(UniformOracle(bounds), n_pairs=None)
    options = {"mechanism": LaplaceMechanism(3.0), "sensitivity": sensitivity}
    plan = plan_release(function, n_samples=80, like=records, **options)
    exact, inside = np.atleast_1d(function(records)), []
    for seed in range(40):
        released = plan.execute(records, random_state=seed)
        low, high = released.value_interval(0.8, n_draws=99, random_state=seed).T
        inside += [*((low <= exact) & (exact <= high))]
    assert 0.6 < np.mean(inside) < 0.97
    released.save(tmp_path, n_draws=99)
    low, high = load(tmp_path).value_interval(0.8, random_state=0).T
    assert low.shape == exact.shape
    assert np.all((low < released.value) & (released.value < high))


# noisy numbers may be below -1
@pytest.mark.filterwarnings("ignore:invalid value encountered in log1p")
def test_a_simulated_model_that_cannot_predict_might_have_said_anything():
    """Noise moves a median below -1, of which there is no logarithm, in some of 39 models."""
    rng, response = np.random.default_rng(0), np.random.default_rng(1).uniform(size=600)
    amounts = rng.lognormal(0, 1, size=(600, 2))
    amounts[rng.random(amounts.shape) < 0.1] = np.nan
    pipeline = make_pipeline(
        SimpleImputer(strategy="median"), FunctionTransformer(np.log1p), StandardScaler(), Ridge()
    )
    oracle = sampler(amounts[:300], response[:300], n_pairs=None)
    options = {"mechanism": LaplaceMechanism(0.02, code=None), "random_state": 1}
    amounts, response = amounts[300:], response[300:]
    model = private(pipeline, sensitivity=oracle, **options).fit(amounts, response)
    release, fails = model.plan_.execute(amounts, response, random_state=1), 0
    for each in release.plausible_models(n_draws=39, random_state=0):
        try:
            each.predict(amounts)
        except ValueError:
            fails += 1
    assert 2 < fails < 20
    closed, opened = 1 - (fails + 1.5) / 20, 1 - (fails + 0.5) / 20  # the rank is of 40 draws
    low, high = model.predict_interval(amounts, closed, n_draws=39, random_state=0).T
    assert (low < high).all()
    assert np.isfinite([low, high]).all()
    low, high = model.predict_interval(amounts, opened, n_draws=39, random_state=0).T
    assert (np.isneginf(low) & np.isposinf(high)).all()


def test_calls_that_cannot_be_served_are_refused():
    with pytest.raises(NotFittedError):
        private(Ridge()).predict_interval(X)
    assert not hasattr(private(Ridge()), "predict_stability")
    for estimator in (LogisticRegression(), KernelDensity()):
        assert not hasattr(private(estimator), "predict_interval")
    model = private(Ridge()).fit(X, y)
    for options in ({"level": 1.0}, {"level": 0.99, "n_draws": 150}, {"n_draws": 0}):
        with pytest.raises(ValueError, match=r"interval|n_draws"):
            model.predict_interval(X, **options)
    ends = model.value_interval(0.8, n_draws=39, random_state=0)
    released = np.append(model.estimator_.coef_, model.estimator_.intercept_)
    assert ((ends[:, 0] < released) & (released < ends[:, 1])).all()
    with pytest.raises(ValueError, match="oracle"):
        without_oracle().predict_interval(X)


@pytest.mark.slow
def test_a_loaded_release_has_intervals_without_the_oracle(tmp_path):
    oracle = PublicDataOracle(X_PUBLIC, Y_PUBLIC)
    coded, noised = (private(Ridge(), **each).fit(X, y) for each in ({}, {"sensitivity": 5.0}))
    for model, name in ((coded, "coded"), (noised, "noised")):
        model.predict_interval(X[:1], n_draws=199)  # so that there are draws that might be saved
        model.save(tmp_path / name, n_draws=99)
        loaded = load(tmp_path / name)
        assert loaded.simulator.oracle is None
        assert not loaded.simulator.drawn  # what it has are the errors, once
        low, high = loaded.predict_interval(X[:5]).T
        first, last = model.predict_interval(X[:5], n_draws=99, random_state=0).T
        assert ((low < model.predict(X[:5])) & (model.predict(X[:5]) < high)).all()
        assert 0.4 < np.mean(high - low) / np.mean(last - first) < 2.5  # it varies by a tenth
        ends = np.array([ends for _, part in coded.sensitivity_.ranges for ends in part])
        public, exact = {"public": ends}, {"parameters": Ridge().fit(X, y)}
        assert not find_leaks(tmp_path / name, X, y, **exact, **public)
        assert not find_leaks(tmp_path / name, *oracle(50, np.random.default_rng(0)), **public)
    with pytest.raises(TypeError, match="predict_stability"):
        loaded.predict_stability(X)
    with pytest.raises(ValueError, match="at most 99"):
        load(tmp_path / "coded").predict_interval(X, n_draws=199)
    load(tmp_path / "coded").save(tmp_path / "again")  # keeps what it has
    assert load(tmp_path / "again").predict_interval(X[:5]).shape == (5, 2)
    coded.save(tmp_path / "bare")
    with pytest.raises(ValueError, match="n_draws=99"):
        load(tmp_path / "bare").predict_interval(X)
    with pytest.raises(ValueError, match="oracle of an estimate"):
        without_oracle().save(tmp_path / "no oracle", n_draws=9)
    for name in ("noised", "again", "bare"):
        card = (tmp_path / name / "README.md").read_text()
        assert ("was saved without `n_draws`" in card) == (name == "bare")
