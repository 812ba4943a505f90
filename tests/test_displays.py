"""Plots store their arrays, compute them without matplotlib, and draw what they store."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from sklearn.datasets import load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skdp import (
    BernsteinTransformer,
    Category,
    ClassTables,
    LaplaceMechanism,
    Number,
    PrivacyGuarantee,
    PrivateEstimator,
    RandomTaskOracle,
    Schema,
    SensitivitySampler,
    UniformOracle,
    plan_release,
)
from skdp.accounting import PrivacyAccountant
from skdp.displays import (
    BudgetDisplay,
    ClassTablesDisplay,
    PrivacyUtilityDisplay,
    PrivateDensityDisplay,
    ReleaseDisplay,
    SensitivityDisplay,
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


@pytest.mark.parametrize("target", [np.mean, sometimes])
def test_the_steps_are_the_shares_of_pairs_that_exceed_a_norm(target):
    """Pairs that failed are counted and not drawn."""
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, n_pairs=99, random_state=0)
    sampled = sampler.sample(target, 10, "l1")
    n_failed = int(np.isinf(sampled.norms).sum())
    assert (0 < n_failed < 99) == (target is sometimes)
    display = SensitivityDisplay.from_estimate(sampled).plot()
    x, y = display.line_.get_data()
    assert np.array_equal(x, np.sort(sampled.norms)[: 99 - n_failed])
    if target is np.mean:
        assert np.allclose(y, [np.mean(sampled.norms >= norm) for norm in x])
    else:
        assert y[-1] == (n_failed + 1) / 99
        assert f"{n_failed} of them failed" in display.line_.get_label()
    assert display.value_.get_xdata()[0] == sampled.value
    assert "0.2" in display.value_.get_label()


@pytest.fixture(scope="module")
def model():
    sampler = SensitivitySampler(
        UniformOracle([(0, 1)] * 3, y_bounds=(0, 1)), gamma=0.2, n_pairs=19, random_state=0
    )
    x = np.random.default_rng(0).uniform(size=(100, 3))
    mechanism = LaplaceMechanism(1.0)
    model = PrivateEstimator(Ridge(), mechanism=mechanism, sensitivity=sampler, random_state=0)
    return model.fit(x, x[:, 0])


def ticks(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def test_intervals_are_of_the_standard_errors(model, monkeypatch):
    display = ReleaseDisplay.from_estimator(model, attribute="coef_").plot()
    assert display.names == ["coef_[0]", "coef_[1]", "coef_[2]"]
    assert np.array_equal(display.values, model.estimator_.coef_)
    drawn = [segment[:, 0] for segment in display.intervals_[2][0].get_segments()]
    expected = display.values[:, None] + 1.96 * display.errors[:, None] * [-1, 1]
    assert np.allclose(drawn, expected)
    both = ReleaseDisplay.from_estimator(model)
    assert list(map(ticks, both.plot().axes_)) == [["0", "1", "2"], ["intercept_"]]
    assert both.ax_.get_title(loc="left") == "coef_"
    assert ticks(both.plot(plt.figure().subplots()).ax_) == [*display.names, "intercept_"]
    monkeypatch.setattr("skdp.displays.release.MOST_NUMBERS", 2)
    cut = ReleaseDisplay.from_estimator(model).plot()
    assert cut.names == ["coef_[0]", "coef_[1]"]
    assert "2 more are not drawn" in cut.ax_.get_xlabel()
    with pytest.raises(ValueError, match="'intercept_'"):
        ReleaseDisplay.from_estimator(model, attribute="coefs_")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bars_are_released_log_odds_with_their_errors(n_classes):
    y = np.arange(3000) % n_classes
    X = np.column_stack([y + np.random.default_rng(0).normal(size=3000), np.arange(3000) // 9 % 2])
    schema = Schema({"x": Number(-3, 5), "z": Category([0, 1])}, classes=list(range(n_classes)))
    tables = ClassTables(schema, random_state=0)
    private = PrivateEstimator(
        LogisticRegression(), mechanism=LaplaceMechanism(1.0), sensitivity=tables, random_state=0
    )
    with pytest.raises(ValueError, match="must have released class tables"):
        ClassTablesDisplay.from_estimator(private)
    private.fit(X, y)
    for given in (private, private.oracle_, private._release):
        display = ClassTablesDisplay.from_estimator(given).plot(alpha=0.5)
        assert len(display.axes_) == 2
        ax, (odds, errors) = display.axes_[0], private.oracle_.log_odds_["x"]
        assert ax.get_title(loc="left").startswith("x: ")
        assert ticks(ax)[0].startswith("-3 to ")
        assert ticks(display.axes_[1]) == ["0", "1"]
        widths = np.reshape([bar.get_width() for bar in ax.patches], odds.T.shape)
        assert np.array_equal(widths, odds.T)
        ends = np.concatenate([each.get_segments() for each in ax.collections])[:, :, 0]
        assert np.allclose(np.diff(ends, axis=1).ravel() / 2, errors.T.ravel())
    alone = ClassTablesDisplay.from_estimator(private).plot(plt.figure().subplots())
    assert "1 of 2 columns" in alone.ax_.get_xlabel()


@pytest.fixture(scope="module")
def plan():
    """Of a classifier whose oracle labels each dataset by a rule of its own."""
    features = np.random.default_rng(0).normal(size=(300, 3))
    sampler = SensitivitySampler(
        RandomTaskOracle(features, classes=[0, 1]), gamma=0.2, n_pairs=19, random_state=0
    )
    estimator = LogisticRegression(C=0.1)
    model = PrivateEstimator(estimator, mechanism=LaplaceMechanism(1.0), sensitivity=sampler)
    return model.plan(100)


UTILITY = {"epsilons": [100.0, 0.01], "n_datasets": 5, "random_state": 0}


@pytest.fixture(scope="module")
def utility(plan):
    accountant = PrivacyAccountant(":memory:", epsilon=1.0)
    with accountant.as_default():
        display = PrivacyUtilityDisplay.from_plan(plan, **UTILITY)
    assert accountant.total().n_releases == 0
    return display


def test_scores_rise_from_chance_towards_those_without_noise(plan, utility):
    """Training and test records of a dataset have the same rule, or all scores would be chance."""
    assert utility.epsilons.tolist() == [0.01, 100.0]
    assert utility.scores.shape == (2, 5)
    assert utility.exact.mean() > 0.75
    low, high = utility.scores.mean(axis=1)
    assert low < utility.exact.mean() - 0.1
    assert high > low + 0.1
    assert utility.public is None  # of random rules
    again = PrivacyUtilityDisplay.from_plan(plan, **UTILITY)
    assert np.array_equal(again.scores, utility.scores)
    assert plan.guarantee.epsilon == 1.0


def test_the_curve_is_that_of_the_means(utility):
    display = utility.plot()
    assert np.array_equal(display.line_.get_ydata(), utility.scores.mean(axis=1))
    labels = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    assert {"without noise", "a guess"} < labels
    assert "accuracy" in display.ax_.get_ylabel()
    means = {"epsilon 100": utility.scores[-1], "a guess": utility.majority}
    for name, scores in means.items():
        assert f"{name}: {scores.mean():.3g}" in str(utility)


def test_a_stated_task_is_a_single_point(plan):
    point = {"majority": 0.6, "exact": 0.9}
    stated = replace(plan, expect=point)
    display = PrivacyUtilityDisplay.from_plan(stated, epsilons=[1.0], random_state=0)
    (score,) = np.ravel(display.scores)
    assert 0.4 < score < 0.9
    assert (display.exact.tolist(), display.majority.tolist()) == ([0.9], [0.6])
    assert "a guess: 0.6" in str(display)


TASKS = RandomTaskOracle(np.random.default_rng(0).random((20, 1)), classes=[0, 1])


@pytest.mark.loop(
    ("options", "word"),
    [
        *(({"epsilons": each}, "'epsilons'") for each in ([], [0.0], [np.nan], ["a"])),
        ({"test_oracle": TASKS}, "one rule"),
        ({"n_datasets": 0}, "'n_datasets'"),
    ],
)
def test_what_cannot_be_simulated_is_refused(plan, options, word):
    with pytest.raises(ValueError, match=word):
        PrivacyUtilityDisplay.from_plan(plan, **options)


def test_a_plan_without_an_oracle_or_a_score_is_refused():
    options = {"mechanism": LaplaceMechanism(1.0), "n_samples": 10}
    uniform = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.5, n_pairs=3, random_state=0)
    for sensitivity, like in ((0.1, np.zeros((3, 1))), (uniform, None)):
        plan = plan_release(np.mean, like=like, sensitivity=sensitivity, **options)
        with pytest.raises(ValueError, match="'plan' parameter"):
            PrivacyUtilityDisplay.from_plan(plan)


@pytest.mark.parametrize("n_rows", [7, 200])
def test_the_steps_of_a_budget_are_its_rows_and_the_ticks_some_of_them(n_rows):
    accountant = PrivacyAccountant(":memory:", epsilon=99.0)
    for row in range(1, n_rows + 1):
        accountant.spend(PrivacyGuarantee(epsilon=0.1), label=f"row {row}")
    accountant.spend(PrivacyGuarantee(epsilon=1.0), label="sum")
    display = BudgetDisplay.from_accountant(accountant).plot()
    left = [*(99 - 0.1 * np.arange(n_rows + 1)), 98 - 0.1 * n_rows]
    assert np.allclose(display.line_.get_ydata(), left)
    assert display.left[-1] == accountant.remaining()
    assert display.ax_.get_title() == str(accountant).splitlines()[-1]
    texts = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    step = -(-(n_rows + 2) // 40)
    names = ["start", *(f"row {i}" for i in range(1, n_rows + 1)), "sum"]
    assert texts == names[::step]
    display.labels[:3] = ["a" * 500, "mean", ""]
    texts = [tick.get_text() for tick in display.plot().ax_.get_xticklabels()]
    assert n_rows > 7 or texts[1:4] == ["a" * 32 + " ...", "mean", "release 3"]
    with pytest.raises(ValueError, match="limit"):
        BudgetDisplay.from_accountant(PrivacyAccountant(":memory:", epsilon=np.inf))


def wine(n_columns):
    return load_wine(as_frame=True).data[["alcohol", "ash", "hue"]].iloc[:, :n_columns]


def density_of(sides, degree=3, epsilon=10.0, bandwidth=0.5, sensitivity="known"):
    """A released density of as many columns of wine as there are sides of the box."""
    return PrivateEstimator(
        KernelDensity(bandwidth=bandwidth),
        mechanism=LaplaceMechanism(epsilon),
        sensitivity=sensitivity,
        release=BernsteinTransformer(degree, feature_range=sides),
        random_state=0,
    ).fit(wine(len(sides)))


def test_the_exact_density_is_in_the_intervals_as_often_as_said():
    """Behind a scaler, and with a peak at the border of the box: kernels reach beyond it.

    Six releases of 21 points, whose errors are independent.
    """
    income, box = np.random.default_rng(0).normal(0, 30_000, size=(2000, 1)), (0, 120_000)
    income, inside = np.abs(income), []
    exact = KernelDensity(bandwidth=6_000).fit(income)
    for seed in range(6):
        kernel = KernelDensity(bandwidth=0.05 if seed % 2 else 6_000)
        scaler = FrozenEstimator(MinMaxScaler().fit(np.transpose([box])))
        model = PrivateEstimator(
            make_pipeline(scaler, kernel) if seed % 2 else kernel,
            mechanism=LaplaceMechanism(1.0),
            sensitivity="known",
            release=BernsteinTransformer(degree=20, feature_range=box),
            random_state=seed,
        ).fit(income)
        display = PrivateDensityDisplay.from_estimator(model, level=0.9, random_state=seed)
        drawn, at = (
            np.exp(exact.score_samples(points[:, None]))
            for points in (display.grid[0], display.lattice)
        )
        assert trapezoid(drawn, display.grid[0]) < 0.95
        low, high = display.intervals.T * min(display.mass, 1)
        inside.append(np.mean((low <= at) & (at <= high)))
    assert 0.8 < np.mean(inside) < 0.98


def test_a_density_is_a_line_over_one_column_and_an_image_over_two():
    sides = [(11, 15), (1, 4), (0, 2)]
    single, double, triple = (density_of(sides[:n], sensitivity=0.1) for n in (1, 2, 3))
    one = PrivateDensityDisplay.from_estimator(single, n_points=101).plot()
    x, y = one.line_.get_data()
    assert np.allclose(y, np.exp(single.score_samples(pd.DataFrame({"alcohol": x}))))
    assert trapezoid(y, x) == pytest.approx(1, abs=1e-3)
    assert one.ax_.get_xlabel() == "alcohol"
    two = PrivateDensityDisplay.from_estimator(double, n_points=41).plot()
    assert trapezoid(trapezoid(two.values, two.grid[1]), two.grid[0]) == pytest.approx(1, abs=0.01)
    assert np.array_equal(two.mesh_.get_array(), two.values.T)
    assert (two.ax_.get_xlabel(), two.ax_.get_ylabel()) == ("alcohol", "ash")
    released = single.plan_.execute(wine(1), random_state=0)
    barred = PrivateDensityDisplay.from_estimator(released, level=0.5, random_state=0).plot()
    label = barred.ax_.get_legend_handles_labels()[1][0]
    assert label == f"exact, with its kernel, 50%, divided by {barred.mass:.3g}"
    at, ends = (part.reshape(-1, 3) for part in barred.bars_.get_data())
    assert np.array_equal(at[:, 0], barred.lattice)
    assert np.array_equal(ends[:, :2], barred.intervals)
    assert np.isnan(ends[:, 2]).all()
    alone = PrivateDensityDisplay.from_estimator(released, n_points=101)
    assert np.array_equal(alone.values, one.values)
    for model, level, word in ((double, 0.5, "Got 2 columns"), (triple, None, "Got 3 columns")):
        with pytest.raises(ValueError, match=word):
            PrivateDensityDisplay.from_estimator(model, level=level)
