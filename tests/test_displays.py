"""Plots store their arrays, compute them without matplotlib, and draw what they store."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from skdp import (
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    ReleaseDisplay,
    ReleaseSummary,
    SensitivityDisplay,
    SensitivitySampler,
    UniformOracle,
)

plt = pytest.importorskip("matplotlib.pyplot", reason="needs the 'plot' extra")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def sometimes(X):
    if X.max() > 0.99:
        raise ValueError("too large")
    return X.mean()


def estimate(target=np.mean):
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, n_pairs=99, random_state=0)
    return sampler.sample(target, 10, "l1")


def test_the_steps_are_the_shares_of_pairs_that_exceed_a_norm():
    sampled = estimate()
    display = SensitivityDisplay.from_estimate(sampled, known=0.1).plot()
    x, y = display.line_.get_data()
    assert np.array_equal(x, np.sort(sampled.norms))
    assert np.allclose(y, [np.mean(sampled.norms >= norm) for norm in x])
    assert display.value_.get_xdata()[0] == sampled.value
    assert display.known_.get_xdata()[0] == 0.1
    assert "0.2" in display.value_.get_label()


def test_pairs_that_failed_are_counted_and_not_drawn():
    sampled = estimate(sometimes)
    n_failed = int(np.isinf(sampled.norms).sum())
    assert 0 < n_failed < 99
    display = SensitivityDisplay.from_estimate(sampled).plot()
    x, y = display.line_.get_data()
    assert len(x) == 99 - n_failed
    assert y[-1] == (n_failed + 1) / 99
    assert f"{n_failed} of them failed" in display.line_.get_label()


def test_a_bound_on_paper_has_no_sample():
    bound = KnownSensitivity(0.1, "l1", 10)
    with pytest.raises(TypeError, match="has no sampled norms"):
        SensitivityDisplay.from_estimate(bound)


@pytest.fixture(scope="module")
def model():
    sampler = SensitivitySampler(
        UniformOracle([(0, 1)] * 3, y_bounds=(0, 1)), gamma=0.2, n_pairs=19, random_state=0
    )
    x = np.random.default_rng(0).uniform(size=(100, 3))
    mechanism = LaplaceMechanism(1.0)
    model = PrivateEstimator(Ridge(), mechanism=mechanism, sensitivity=sampler, random_state=0)
    return model.fit(x, x[:, 0])


def test_intervals_are_of_the_standard_errors(model):
    display = ReleaseDisplay.from_estimator(model, attribute="coef_").plot()
    assert display.names == ["coef_[0]", "coef_[1]", "coef_[2]"]
    assert np.array_equal(display.values, model.estimator_.coef_)
    ((segments,),) = [display.intervals_[2]]
    drawn = [segment[:, 0] for segment in segments.get_segments()]
    expected = display.values[:, None] + 1.96 * display.errors[:, None] * [-1, 1]
    assert np.allclose(drawn, expected)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == display.names


def test_numbers_of_the_oracle_are_hollow():
    numbers = np.array([1.0, 2.0, 3.0])
    learned = np.array([0.5, 0.01, 0.9])
    summary = ReleaseSummary("a promise", ["a[0]", "a[1]", "b"], numbers, numbers / 9, learned)
    filled, hollow = ReleaseDisplay.from_summary(summary).plot().ax_.get_lines()[-3:-1]
    assert filled.get_xdata().tolist() == [1.0, 3.0]
    assert hollow.get_xdata().tolist() == [2.0]
    assert hollow.get_markerfacecolor() == "w"


def test_as_many_numbers_as_asked_for(model):
    assert ReleaseDisplay.from_estimator(model, max_numbers=2).names == ["coef_[0]", "coef_[1]"]
    with pytest.raises(ValueError, match=r"one of \['coef_', 'intercept_'\]"):
        ReleaseDisplay.from_estimator(model, attribute="coefs_")
