"""Plots store their arrays, compute them without matplotlib, and draw what they store."""

from unittest.mock import Mock

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
    LaplaceMechanism,
    PrivacyGuarantee,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
    UniformOracle,
)
from skdp.accounting import PrivacyAccountant
from skdp.displays import (
    BudgetDisplay,
    PrivacyUtilityDisplay,
    PrivateDensityDisplay,
    ReleaseDisplay,
    SensitivityDisplay,
)
from skdp.result import ReleaseSummary

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
    display = SensitivityDisplay.from_estimate(sampled, known=0.1).plot()
    x, y = display.line_.get_data()
    assert np.array_equal(x, np.sort(sampled.norms)[: 99 - n_failed])
    if target is np.mean:
        assert np.allclose(y, [np.mean(sampled.norms >= norm) for norm in x])
    else:
        assert y[-1] == (n_failed + 1) / 99
        assert f"{n_failed} of them failed" in display.line_.get_label()
    assert display.value_.get_xdata()[0] == sampled.value
    assert display.known_.get_xdata()[0] == 0.1
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


def test_intervals_are_of_the_standard_errors(model):
    display = ReleaseDisplay.from_estimator(model, attribute="coef_").plot()
    assert display.names == ["coef_[0]", "coef_[1]", "coef_[2]"]
    assert np.array_equal(display.values, model.estimator_.coef_)
    ((segments,),) = [display.intervals_[2]]
    drawn = [segment[:, 0] for segment in segments.get_segments()]
    expected = display.values[:, None] + 1.96 * display.errors[:, None] * [-1, 1]
    assert np.allclose(drawn, expected)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["0", "1", "2"]
    assert display.ax_.get_title(loc="left") == "coef_"
    both = ReleaseDisplay.from_estimator(model).plot().ax_
    assert [text.get_text() for text in both.get_yticklabels()][2:] == ["coef_[2]", "intercept_"]
    assert ReleaseDisplay.from_estimator(model, max_numbers=2).names == ["coef_[0]", "coef_[1]"]
    with pytest.raises(ValueError, match="'intercept_'"):
        ReleaseDisplay.from_estimator(model, attribute="coefs_")


NAMES = ["a[0]", "a[1]", "b"]
ERRORS, LEARNED = np.array([1.0, 2.0, 3.0]) / 9, np.array([0.5, 0.01, 0.9])


def display_of(values, errors=ERRORS, names=NAMES):
    summary = ReleaseSummary("a promise", names, np.array(values), np.array(errors), LEARNED)
    return ReleaseDisplay.from_summary(summary)


def test_numbers_of_the_oracle_are_hollow():
    display = display_of([1.0, 2.0, 3.0]).plot()
    filled, hollow, cross = display.ax_.get_lines()[-4:-1]
    assert filled.get_xdata().tolist() == [1.0, 3.0]
    assert hollow.get_xdata().tolist() == [2.0]
    assert hollow.get_markerfacecolor() == "w"
    assert not cross.get_xdata().size
    assert len(display.ax_.get_legend().get_texts()) == 2
    assert display.ax_.get_xscale() == "linear"
    told = display_of([1.0, 2.0, 3.0], [0.1, np.nan, 0.1]).plot().ax_
    assert [line.get_xdata().tolist() for line in told.get_lines()[-3:-1]] == [[], [2.0]]
    assert told.get_legend().get_texts()[-1].get_text() == "the same in all public fits"


def test_numbers_in_other_units_have_panels_and_scales_of_their_own():
    display = display_of([1e5, 2.0, 0.3])
    assert display.plot(plt.figure().subplots()).ax_.get_xscale() == "symlog"
    panels = display.plot().axes_
    drawn = [[text.get_text() for text in ax.get_yticklabels()] for ax in panels]
    assert drawn == [["0", "1"], ["b"]]
    assert panels[0].get_legend() is not None
    panels = display_of([2000.0, 5.0, 240.0], [9.0, 0.5, 8.0]).plot().axes_  # hidden beside 2000
    assert [ax.get_xscale() for ax in panels] == ["symlog", "linear"]
    display = display_of([-1e7, 1e7, 0.1], [9.0, 0.5, 8.0], ["a[0]", "a[1]", "a[2]"])
    ticks = display.plot().ax_.get_xticks()
    assert 0 in ticks
    assert 5 <= len(ticks) <= 9  # labels of more touch


def test_long_names_leave_the_numbers_their_room():
    """However often it is drawn: the layout is made anew each time."""
    names = [f"columntransformer__pipeline-{i}__another_step__mean_[column]" for i in (1, 1, 2)]
    names += ["coef_[" + "a long name " * 9 + "]", "intercept_"]
    numbers = np.arange(1.0, 6.0)
    display = ReleaseDisplay.from_summary(
        ReleaseSummary("a promise", names, numbers, numbers / 9, np.ones(5)), max_numbers=4
    ).plot()
    for _ in range(3):
        display.figure_.canvas.draw()
        for ax, title in zip(display.axes_, (*names[1:3], "coef_"), strict=True):
            assert ax.get_position().width > 0.5
            titles = ax.title, ax._left_title, ax._right_title
            (drawn,) = (each for each in titles if each.get_text())
            assert drawn.get_text() == title.removesuffix("[column]")
            extent = drawn.get_window_extent()
            assert 0 <= extent.x0 < extent.x1 <= display.figure_.bbox.width
    assert "1 more are not drawn" in display.axes_[-1].get_xlabel()
    (label,) = (text.get_text() for text in display.axes_[-1].get_yticklabels())
    assert label.startswith("a long name")
    assert len(label) <= 40


@pytest.fixture(scope="module")
def task():
    """A classifier whose oracle labels each dataset by a rule of its own."""
    features = np.random.default_rng(0).normal(size=(300, 3))
    sampler = SensitivitySampler(RandomTaskOracle(features, classes=[0, 1]), gamma=0.2, n_pairs=19)
    estimator = LogisticRegression(C=0.1)
    return PrivateEstimator(estimator, mechanism=LaplaceMechanism(1.0), sensitivity=sampler)


@pytest.fixture(scope="module")
def utility(task):
    return PrivacyUtilityDisplay.from_plan(
        task, 100, epsilons=[100.0, 0.01], n_datasets=5, random_state=0
    )


@pytest.mark.slow
def test_scores_rise_from_chance_to_those_without_noise(utility):
    """Training and test records of a dataset have the same rule, or all scores would be chance."""
    assert utility.epsilons.tolist() == [0.01, 100.0]
    assert utility.scores.shape == (2, 5)
    assert utility.exact.mean() > 0.8
    low, high = utility.scores.mean(axis=1)
    assert low < utility.exact.mean() - 0.1
    assert abs(high - utility.exact.mean()) < 0.05
    assert 0.4 < utility.chance.mean() < 0.7


@pytest.mark.slow
def test_a_plan_is_simulated_with_its_own_code_at_every_level(task):
    plan = task.plan(100)
    options = {"epsilons": [0.01, 100.0], "n_datasets": 5, "random_state": 0}
    accountant = PrivacyAccountant(":memory:", epsilon=1.0)
    with accountant.as_default():
        display, again = (PrivacyUtilityDisplay.from_plan(plan, **options) for _ in range(2))
    low, high = display.scores.mean(axis=1)
    assert low < display.exact.mean() - 0.1
    assert high > low + 0.1
    assert display.scoring == "accuracy"
    assert np.array_equal(again.scores, display.scores)
    assert accountant.total().n_releases == 0
    assert plan.guarantee.epsilon == 1.0
    assert not hasattr(task, "estimator_")
    with pytest.raises(TypeError, match="'n_samples' parameter"):
        PrivacyUtilityDisplay.from_plan(plan, 50)


def test_the_curve_is_that_of_the_means(utility):
    display = utility.plot()
    assert np.array_equal(display.line_.get_ydata(), utility.scores.mean(axis=1))
    labels = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    assert {"without noise", "mean of public fits", "without features"} < labels
    assert 0.3 < utility.public.mean() < 0.7  # of random rules
    assert "accuracy" in display.ax_.get_ylabel()
    assert f"epsilon 100: {utility.scores[-1].mean():.3g}" in str(utility)
    assert f"mean of public fits: {utility.public.mean():.3g}" in str(utility)
    assert f"without features: {utility.chance.mean():.3g}" in str(utility)


def test_the_smallest_level_that_suffices_is_suggested(utility):
    with pytest.warns(UserWarning, match="records like the oracle's"):
        assert utility.suggest_epsilon(0.75) == 100.0
    with pytest.warns(
        UserWarning, match=r"records like the oracle's.* without private data; .* one task"
    ):
        assert utility.suggest_epsilon(0.1) == 0.01
    with pytest.raises(ValueError, match=r"without noise 0\."):
        utility.suggest_epsilon(1.1)


def _display(*levels, exact=(0.9, 0.9)):
    """Return one whose levels 1, 2, ... have these scores."""
    return PrivacyUtilityDisplay(
        epsilons=np.arange(1.0, 1 + len(levels)),
        scores=np.array(levels),
        exact=np.array(exact),
        public=None,
        chance=None,
        scoring="accuracy",
    )


@pytest.mark.parametrize(("second", "is_named"), [(0.8, True), (0.62, False)])
def test_a_smaller_level_that_misses_the_target_by_chance_is_named(second, is_named):
    display = _display([0.6, second], [0.8, 0.9])  # standard errors .1 or .01 of the first
    with pytest.warns(UserWarning, match="records like the oracle's") as caught:
        assert display.suggest_epsilon(0.85) == 2.0
    told = str(caught[0].message)
    assert ("Epsilon 1 may do as well: it scores 0.7 ± 0.1" in told) == is_named
    assert ("epsilon 1: 0.7 ± 0.1\n" in str(display)) == is_named
    assert "±" not in str(_display([0.6], exact=[0.9]))
    assert len(display.plot().ax_.get_lines()) == 2  # no model of chance, and no line for it


def simulated(sensitivity, *args, **options):
    model = PrivateEstimator(Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=sensitivity)
    return lambda: PrivacyUtilityDisplay.from_plan(model, *args, **options)


NEVER = SensitivitySampler(Mock(side_effect=AssertionError))
TASKS = RandomTaskOracle(np.random.default_rng(0).random((20, 1)), classes=[0, 1])


@pytest.mark.loop(
    ("call", "word"),
    [
        *((simulated(NEVER, 100, epsilons=each), "'epsilons'") for each in ([], [0.0], [np.nan])),
        (simulated(NEVER, 100, scoring="rocauc"), "rocauc"),
        (simulated(SensitivitySampler(TASKS), 20, test_oracle=TASKS), "one rule"),
        (simulated(0.1, 100), "Sampler"),
        (simulated(0.1), "'n_samples'"),
    ],
)
def test_what_cannot_be_simulated_is_refused_before_anything_is_drawn(call, word):
    with pytest.raises((ValueError, TypeError), match=word):
        call()


@pytest.mark.parametrize("n_rows", [7, 200])
def test_the_ticks_of_a_budget_are_its_rows_or_some_of_them(n_rows):
    accountant = PrivacyAccountant(":memory:", epsilon=99.0)
    for row in range(1, n_rows + 1):
        accountant.spend(PrivacyGuarantee(epsilon=0.1), label=f"row {row}")
    display = BudgetDisplay.from_accountant(accountant).plot()
    texts = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    step = -(-(n_rows + 1) // 40)
    assert texts == ["start", *(f"row {i}" for i in range(step, n_rows + 1, step))]
    assert np.allclose(display.line_.get_ydata(), 99 - 0.1 * np.arange(n_rows + 1))


def wine(n_columns):
    return load_wine(as_frame=True).data[["alcohol", "ash", "hue"]].iloc[:, :n_columns]


def density_of(n_columns, degree=3):
    sides = [(11, 15), (1, 4), (0, 2)][:n_columns]
    box = BernsteinTransformer(degree, order=1, feature_range=sides)
    kde, mechanism = KernelDensity(bandwidth=0.5), LaplaceMechanism(10.0)
    model = PrivateEstimator(kde, mechanism=mechanism, sensitivity=0.1, release=box, random_state=0)
    return model.fit(wine(n_columns))


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_exact_density_is_in_the_intervals_as_often_as_said(epsilon):
    """Behind a scaler, and with a peak at the border of the box: kernels reach beyond it.

    Six releases of 21 points, whose errors are independent.
    """
    income, box = np.random.default_rng(0).normal(0, 30_000, size=(2000, 1)), (0, 120_000)
    income, inside = np.abs(income), []
    for seed in range(6):
        kernel = KernelDensity(bandwidth=0.05 if seed % 2 else 6_000)
        scaler = FrozenEstimator(MinMaxScaler().fit(np.transpose([box])))
        model = PrivateEstimator(
            make_pipeline(scaler, kernel) if seed % 2 else kernel,
            mechanism=LaplaceMechanism(epsilon),
            sensitivity="known",
            release=BernsteinTransformer(degree=20, feature_range=box),
            random_state=seed,
        ).fit(income)
        display = PrivateDensityDisplay.from_estimator(model, level=0.9, random_state=seed)
        exact = KernelDensity(bandwidth=6_000).fit(income)
        drawn, at = (
            np.exp(exact.score_samples(points[:, None]))
            for points in (display.grid[0], display.lattice)
        )
        assert trapezoid(drawn, display.grid[0]) < 0.95
        low, high = display.intervals.T * min(display.mass, 1)
        inside.append(np.mean((low <= at) & (at <= high)))
    assert 0.8 < np.mean(inside) < 0.98


def test_a_picture_says_what_its_density_was_divided_by():
    """A third of the wines has more than 13.5 percent of alcohol."""
    drawn = []
    for box, degree in (([(11, 13.5)], 30), ([(11, 13.5), (1, 4)], 30), ([(10, 16)], 90)):
        model = PrivateEstimator(
            KernelDensity(bandwidth=0.1),
            mechanism=LaplaceMechanism(1e4),
            sensitivity="known",
            release=BernsteinTransformer(degree=degree, feature_range=box),
            random_state=0,
        ).fit(wine(len(box)))
        drawn.append(PrivateDensityDisplay.from_estimator(model).plot())
    line, image, whole = drawn
    assert [round(display.mass, 1) for display in drawn] == [0.7, 0.7, 1.0]
    assert line.ax_.get_legend_handles_labels()[1] == [f"released, divided by {line.mass:.3g}"]
    label = image.mesh_.colorbar.ax.get_ylabel().split("\n")  # lines, as one would be cut off
    assert label[0] == "probability per"
    assert label[2] == f"divided by {image.mass:.3g}"
    assert whole.ax_.get_legend() is None
    whole.ax_.plot([12, 13], [0, 10])  # what is drawn into it afterwards is not cut
    assert whole.ax_.get_ylim()[1] > 10


def test_what_noise_adds_to_the_line_is_not_taken_from_the_bars():
    """It makes of nothing a little everywhere, as what is below 0 becomes 0."""
    box = BernsteinTransformer(degree=60, feature_range=(0, 30))
    model = PrivateEstimator(
        KernelDensity(bandwidth=0.5),
        mechanism=LaplaceMechanism(0.3),
        sensitivity="known",
        release=box,
        random_state=0,
    ).fit(wine(1))
    drawn = PrivateDensityDisplay.from_estimator(model, level=0.9, random_state=0).plot()
    assert drawn.mass > 1.1
    assert drawn.line_.get_label() == f"released, divided by {drawn.mass:.3g}"
    assert not drawn.ax_.get_legend().get_title().get_text()
    ends = model.value_interval(0.9, random_state=0)
    np.testing.assert_allclose(drawn.intervals, np.maximum(ends, 0))


def test_a_density_is_a_line_over_one_column_and_an_image_over_two():
    one = PrivateDensityDisplay.from_estimator(density_of(1), n_points=101).plot()
    x, y = one.line_.get_data()
    columns = pd.DataFrame({"alcohol": x})
    assert np.allclose(y, np.exp(density_of(1).score_samples(columns)))
    assert trapezoid(y, x) == pytest.approx(1, abs=1e-3)
    assert one.ax_.get_xlabel() == "alcohol"
    two = PrivateDensityDisplay.from_estimator(density_of(2), n_points=41).plot()
    assert trapezoid(trapezoid(two.values, two.grid[1]), two.grid[0]) == pytest.approx(1, abs=0.01)
    assert np.array_equal(two.mesh_.get_array(), two.values.T)
    assert (two.ax_.get_xlabel(), two.ax_.get_ylabel()) == ("alcohol", "ash")
    released = density_of(1).plan_.execute(wine(1), random_state=0)
    barred = PrivateDensityDisplay.from_estimator(released, level=0.5, random_state=0).plot()
    assert "exact, with its kernel, 50%" in barred.ax_.get_legend_handles_labels()[1]
    at, ends = (part.reshape(-1, 3) for part in barred.bars_.get_data())
    assert np.array_equal(at[:, 0], barred.lattice)
    assert np.array_equal(ends[:, :2], barred.intervals)
    assert np.isnan(ends[:, 2]).all()
    with pytest.raises(ValueError, match="'level' parameter"):
        PrivateDensityDisplay.from_estimator(density_of(2), level=0.5)
    with pytest.raises(ValueError, match=r"one or two columns\. Got 3"):
        PrivateDensityDisplay.from_estimator(density_of(3))
