"""RandomTaskOracle: every dataset has its own rule, every class, and no trace of an answer."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, Ridge

from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler
from skdp.oracles import random_task
from skdp.oracles.random_task import RandomTaskOracle

NORMAL = np.random.default_rng(1).normal(size=(500, 3)) * [1.0, 100.0, 0.01] + [0, 7, -3]


def is_linearly_separable(X, positive):
    """Decide by linear programming, up to the scale of the columns."""
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    signs = np.where(positive, 1.0, -1.0)
    result = linprog(
        np.zeros(Z.shape[1]), A_ub=-signs[:, None] * Z, b_ub=-np.ones(len(Z)), bounds=(None, None)
    )
    return result.status == 0


@settings(max_examples=100, deadline=None)
@given(
    n_classes=st.integers(2, 5),
    spare=st.integers(0, 30),
    noise=st.sampled_from([0, 0.3, 1]),
    seed=st.integers(0, 2**32 - 1),
)
def test_both_datasets_of_every_pair_hold_every_class(n_classes, spare, noise, seed):
    oracle = RandomTaskOracle(NORMAL, classes=range(n_classes), noise=noise)
    _, y = oracle(2 * n_classes + spare, np.random.default_rng(seed))
    counts = np.bincount(y, minlength=n_classes)
    assert counts.min() >= 2
    assert counts.sum() == 2 * n_classes + spare
    least = 2 + oracle.least_share * spare  # rounding moves a count by less than one
    assert counts.min() > least - 1


def test_the_least_share_is_often_drawn_and_bounds_all():
    """Of two classes .30 of the tasks have one below 10 %; six standard deviations."""
    oracle, rng = RandomTaskOracle(NORMAL, classes=[0, 1]), np.random.default_rng(0)
    rarest = np.array(
        [min(y.mean(), 1 - y.mean()) for _, y in (oracle(2000, rng) for _ in range(600))]
    )
    assert rarest.min() > 0.05
    assert abs((rarest < 0.1).mean() - 0.3) < 6 * np.sqrt(0.3 * 0.7 / 600)
    assert "least_share=0.05" in repr(oracle)
    assert "least_share=0.025" in repr(RandomTaskOracle(NORMAL, classes=range(20)))
    near = RandomTaskOracle(NORMAL, classes=[0, 1], least_share=0.3)
    assert all(0.295 < near(2000, rng)[1].mean() < 0.705 for _ in range(50))
    assert RandomTaskOracle(NORMAL, classes=[0, 1], class_shares=[3, 1]).least_share == 0.25


@pytest.mark.parametrize(
    "options",
    [
        {"classes": [0, 1], "least_share": 0.6},
        {"classes": [0, 1], "least_share": -0.1},
        {"classes": [0, 1], "least_share": "small"},
        {"classes": [0, 1], "least_share": 0.1, "class_shares": [1, 1]},
        {"y_scale": 1.0, "least_share": 0.1},
    ],
    ids=str,
)
def test_a_least_share_that_cannot_be(options):
    with pytest.raises(ValueError, match="'least_share' parameter of RandomTaskOracle must be"):
        RandomTaskOracle(NORMAL, **options)


def test_classes_are_split_by_planes_and_noise_spoils_it():
    rng = np.random.default_rng(2)
    X, y = RandomTaskOracle(NORMAL, classes=[0, 1, 2], noise=0)(90, rng)
    assert any(is_linearly_separable(X, y == label) for label in range(3))
    for _ in range(10):
        X, y = RandomTaskOracle(NORMAL, classes=["n", "p"], noise=0)(60, rng)
        assert is_linearly_separable(X, y == "p")
    X, y = RandomTaskOracle(NORMAL, classes=["n", "p"], noise=0.5)(200, rng)
    assert not is_linearly_separable(X, y == "p")


def test_noise_shuffles_its_share_of_the_labels():
    """The same seed without noise has the labels before; a share .1 changes 5 % of them.

    The number changed has standard deviation below sqrt(n * .05); six of them are a false
    positive rate below 1e-8.
    """
    n = 20_000
    options = {"classes": ["z", "a"], "class_shares": [1, 1]}
    X, y = RandomTaskOracle(NORMAL, noise=0.1, **options)(n, np.random.default_rng(3))
    X0, y0 = RandomTaskOracle(NORMAL, noise=0.0, **options)(n, np.random.default_rng(3))
    np.testing.assert_array_equal(X, X0)
    assert np.sum(y == "a") == np.sum(y0 == "a") == n // 2
    assert abs(np.sum(y != y0) - 0.05 * n) < 6 * np.sqrt(0.05 * n)
    shares = RandomTaskOracle(NORMAL, **options | {"class_shares": [3, 1]})
    assert shares.classes_.tolist() == ["a", "z"]
    assert np.sum(shares(404, np.random.default_rng(0))[1] == "z") == 302  # 2 + 400 * .75


@pytest.mark.parametrize("noise", [0.0, 0.5, None])
def test_a_real_response_is_a_linear_rule_and_noise(noise):
    """The residual variance is chi-square: two-sided at level 1e-6, exactly 0 without noise."""
    n, mean, scale = 2_000, 50.0, 3.0
    oracle = RandomTaskOracle(NORMAL, noise=noise, y_mean=mean, y_scale=scale)
    X, y = oracle(n, np.random.default_rng(7))
    design = np.column_stack([np.ones(n), X])
    residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    if noise == 0:
        np.testing.assert_allclose(residuals, 0, atol=1e-9)
        assert y.mean() == pytest.approx(mean)
        assert y.std() == pytest.approx(scale)
    else:
        law = stats.chi2(n - 4)
        share = 1.0 if noise is None else noise
        statistic = np.sum(residuals**2) / (scale * share) ** 2
        assert law.ppf(5e-7) < statistic < law.isf(5e-7)
        assert not law.ppf(5e-7) < 1.21 * statistic < law.isf(5e-7)  # 10 % more noise is seen


def test_a_real_response_by_default_covers_features_that_explain_little():
    """Seeded. Where they explain a quarter of the variance, the sampled quantile is 1.15 times the
    true one; with noise of a tenth it was an eighth of it.
    """

    def real(n, rng):
        X = rng.standard_normal((n, 3))
        return X, 20 + 12 * (0.5 * X[:, 0] + np.sqrt(0.75) * rng.standard_normal(n))

    def quantile(oracle):
        mechanism = LaplaceMechanism(epsilon=1.0, code=None)
        sampler = SensitivitySampler(oracle, n_pairs=399, random_state=0)
        model = PrivateEstimator(Ridge(), mechanism=mechanism, sensitivity=sampler)
        return model.plan(300).sensitivity.value

    public = np.random.default_rng(1).standard_normal((500, 3))
    oracle = {"X": public, "y_mean": 20.0, "y_scale": 12.0}
    assert 1.0 < quantile(RandomTaskOracle(**oracle)) / quantile(real) < 1.5
    assert quantile(RandomTaskOracle(**oracle, noise=0.1)) < 0.3 * quantile(real)


def test_weights_depend_neither_on_units_nor_on_constant_features():
    X, y = RandomTaskOracle(NORMAL, noise=0, y_scale=1)(40, np.random.default_rng(5))
    units = np.array([1e-3, 1.0, 1e6])
    X2, y2 = RandomTaskOracle(NORMAL * units, noise=0, y_scale=1)(40, np.random.default_rng(5))
    np.testing.assert_allclose(X2, X * units)
    np.testing.assert_allclose(y2, y)
    table = np.column_stack([NORMAL[:, 0], np.full(500, 1e9)])
    X, y = RandomTaskOracle(table, noise=0, y_scale=1)(40, np.random.default_rng(0))
    assert abs(np.corrcoef(X[:, 0], y)[0, 1]) == pytest.approx(1)
    constant = RandomTaskOracle(np.ones((3, 2)), noise=0, y_mean=2, y_scale=1)
    np.testing.assert_array_equal(constant(4, np.random.default_rng(0))[1], 2.0)


def agreements(label, n_datasets=200):
    """Count the datasets whose labels agree with the true ones on most records."""
    X, truth = load_breast_cancer(return_X_y=True)
    table = np.column_stack([X, np.arange(len(X))])  # the row number finds the true answer
    rng = np.random.default_rng(13)
    return sum(np.mean(label(table, rng, truth)) > 0.5 for _ in range(n_datasets))


@pytest.mark.slow
def test_the_oracle_knows_nothing_of_the_answer():
    """Agreement with the true labels is above one half in half of the datasets.

    51 records cannot tie. Two-sided binomial test at level 1e-6; a fixed rule that knows the
    answer fails it.
    """

    def by_the_oracle(table, rng, truth):
        X, y = RandomTaskOracle(table, classes=[0, 1])(51, rng)
        return y == truth[X[:, -1].astype(int)]

    def by_a_fixed_rule(table, rng, truth):
        X, _ = RandomTaskOracle(table, classes=[0, 1])(51, rng)
        return (X[:, 0] < 15) == truth[X[:, -1].astype(int)]

    assert stats.binomtest(agreements(by_the_oracle), 200).pvalue > 1e-6
    assert stats.binomtest(agreements(by_a_fixed_rule), 200).pvalue < 1e-6


def position_pvalue(n_datasets=1_500, n=12):
    """Chi-square test that the rarer class is equally likely at every position.

    Each dataset has the same number of it, a sample without replacement, which the factor
    (n-1)/n accounts for.
    """
    oracle = RandomTaskOracle(np.ones((5, 1)), classes=[0, 1], class_shares=[1, 7], noise=0)
    rng = np.random.default_rng(17)
    rare = np.array([oracle(n, rng)[1] == 0 for _ in range(n_datasets)])
    share = rare.mean()
    squares = (rare.sum(axis=0) - n_datasets * share) ** 2
    statistic = squares.sum() / (n_datasets * share * (1 - share)) * (n - 1) / n
    return stats.chi2(n - 1).sf(statistic)


def test_ties_are_not_split_by_position(monkeypatch):
    """Records are exchangeable even when all rows are equal; level 1e-6. Plain sorting fails."""
    assert position_pvalue() > 1e-6
    monkeypatch.setattr(random_task, "_JITTER", 0.0)
    assert position_pvalue() < 1e-6


def test_frames_may_hold_categories_and_gaps():
    """Each value of a category moves the response by a weight of its own, a gap by none."""
    letters = ["a", "b", "c", None] * 25
    table = {"kind": letters, "size": [1.0, None, 3.0, 2.0] * 25}
    pandas = pd.DataFrame(table)
    frames = (
        pandas,
        pandas.astype({"kind": "category"}),
        pandas.convert_dtypes(),
        pl.DataFrame(table),
    )
    drawn = [RandomTaskOracle(X, noise=0, y_scale=1)(40, np.random.default_rng(0)) for X in frames]
    for X, y in drawn:
        np.testing.assert_array_equal(y, drawn[0][1])
        kinds = np.array([str(value) for value in X["kind"]])
        means = [y[kinds == value] for value in ("a", "b", "c")]
        assert all(np.ptp(each) < 1e-12 for each in means)
        assert len({round(each[0], 6) for each in means}) == 3


@pytest.mark.loop(
    ("X", "parameters", "message"),
    [
        ([[np.nan], [1.0]], {}, "contains NaN"),
        ([[np.inf], [1.0]], {}, "contains infinity"),
        (np.array([["a"], ["b"]], dtype=object), {}, "could not convert string to float"),
        ([1.0, 2.0], {}, "Expected 2D array"),
        (np.zeros((0, 2)), {}, "'X' parameter of RandomTaskOracle must hold at least one record"),
        (NORMAL, {"classes": [1]}, "'classes' parameter of RandomTaskOracle must hold two or more"),
        (NORMAL, {"classes": [0, 1], "noise": 1.1}, r"'noise' .* \[0, 1\] .* Got 1.1"),
        (NORMAL, {"noise": -0.1}, r"'noise' .* in \[0, inf\). Got -0.1"),
        (NORMAL, {"noise": np.nan}, "'noise'"),
        (NORMAL, {"noise": np.inf}, "'noise'"),
        (NORMAL, {"y_scale": 1.0, "class_shares": [1, 1]}, "'class_shares' .* for each"),
        (NORMAL, {"classes": [0, 1], "class_shares": [1, 0]}, "'class_shares'"),
        (NORMAL, {"classes": [0, 1], "class_shares": [1, np.inf]}, "'class_shares'"),
        (NORMAL, {"classes": [0, 1], "class_shares": [1, 1, 1]}, "'class_shares'"),
        (NORMAL, {"classes": [0, 1], "y_scale": 2.0}, "'y_scale' .* left alone"),
        (NORMAL, {"classes": [0, 1], "y_mean": 2.0}, "like 'y_mean'. Got y_mean=2.0"),
        (NORMAL, {}, "'y_scale' .* plausible spread of a real response.* 'classes' names labels"),
        (NORMAL, {"y_mean": 5.0}, "Got y_mean=5.0, y_scale=None"),
        (NORMAL, {"y_scale": 0.0}, "'y_scale' .* positive and finite"),
        (NORMAL, {"y_mean": np.inf, "y_scale": 1.0}, "'y_mean'"),
    ],
)
def test_what_random_task_oracle_refuses(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomTaskOracle(X, **parameters)
    few = RandomTaskOracle(NORMAL, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="3 classes must be asked for at least n_samples=6"):
        few(5, np.random.default_rng(0))


def test_a_rule_of_texts_is_one_of_their_words():
    """A rule of whole texts, each of which occurs once, would leave no part to other columns."""
    rng = np.random.default_rng(0)
    words = np.array(["late", "kind", "refund", "parcel"])
    texts = [f"{' '.join(rng.choice(words, 3))} no{i}" for i in range(400)]
    frame = pd.DataFrame({"text": texts, "wait": rng.normal(size=400)})
    frame.loc[:9, "text"] = None
    seen = CountVectorizer(vocabulary=words, binary=True).transform(frame["text"].fillna(""))
    known = np.column_stack([seen.toarray(), frame["wait"]])
    scores = RandomTaskOracle(frame, classes=[0, 1]).rule_scores(5, rng)
    assert LinearRegression().fit(known, scores.T).score(known, scores.T) > 0.99
    frame["text"] = [f"no{i}" for i in range(400)]  # of which none has a part
    scores = RandomTaskOracle(frame, classes=[0, 1]).rule_scores(5, rng)
    np.testing.assert_allclose(abs(np.corrcoef(frame["wait"], scores)[0]), 1.0)
