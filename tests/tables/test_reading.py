"""What people read of class tables: expected scores, information, log odds, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from skdp import (
    Category,
    ClassTables,
    GaussianMechanism,
    LaplaceMechanism,
    Number,
    PrivateEstimator,
    PrivateSearchCV,
    Schema,
    SensitivityEstimate,
    SensitivitySampler,
    load,
    release_oracle,
)
from skdp.accounting import PrivacyAccountant
from skdp.audit import audit_epsilon, audit_estimator
from skdp.displays import PrivacyUtilityDisplay
from skdp.tables.law import information, log_odds
from skdp.tables.release import Design
from skdp.tables.worth import expected_scores

COLUMNS = {"a": Number(0, 10), "b": Category(["u", "v"]), "c": Number(0, 10)}
SCHEMA = Schema(COLUMNS, classes=["no", "yes"])


def made_up(n=3000, seed=0):
    """A strong column, a weaker one, and one of noise."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    a = np.clip(rng.normal(4 + 3 * y, 1.5), 0, 10)
    b = np.where(rng.random(n) < 0.4 + 0.2 * y, "u", "v")
    X = pd.DataFrame({"a": a, "b": b, "c": rng.uniform(0, 10, n)})
    return X, np.where(y, "yes", "no")


X, Y = made_up()


def unlimited():
    return PrivacyAccountant(":memory:", epsilon=1e6, delta=0.5)


def model(estimator=None, epsilon=1.0, schema=SCHEMA):
    return PrivateEstimator(
        LogisticRegression() if estimator is None else estimator,
        mechanism=LaplaceMechanism(epsilon=epsilon),
        sensitivity=ClassTables(schema, random_state=0),
        accountant=unlimited(),
        random_state=0,
    )


def oracle(epsilon=1.0, **options):
    given = {"accountant": unlimited(), "random_state": 0} | options
    return release_oracle(X, Y, schema=SCHEMA, mechanism=LaplaceMechanism(epsilon), **given)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


def wide(n_columns, n_classes):
    columns = {f"c{i}": Number(0, 1) for i in range(n_columns)}
    return Schema(columns, classes=list(range(n_classes)))


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_expected_scores_go_from_a_guess_to_the_exact_model(n_classes, delta):
    """Below n epsilon / d = 1 a release is no better than a guess, and at 20,000 it is exact."""
    rows = []
    for epsilon in (1e-3, 20.0):
        mechanism = GaussianMechanism(epsilon, delta) if delta else LaplaceMechanism(epsilon)
        rows.append(expected_scores(Design.of(wide(8, n_classes), 8000, mechanism, True)))
    low, high = np.array(rows)
    assert np.all(np.diff(high[:3, 1]) > 0.05)  # three strengths
    assert np.all(low[:, 0] < low[:, 2] + 0.05)
    np.testing.assert_allclose(high[:, 0], high[:, 1], atol=0.02)
    assert high[:, 2].tolist() == [1 / n_classes] * 3 + [0.8] * 3


def test_noise_costs_accuracy():
    """The smoothing alone, which knows how large the noise is, would cost .02 to .09."""
    design = Design.of(wide(8, 2), 8000, LaplaceMechanism(0.03), True)
    private, exact, _ = expected_scores(design)[:3].T
    assert np.all(exact - private > 0.1)


def test_expected_scores_are_those_of_real_fits():
    """Of the made-up table here the exact accuracy is near .84, that of the guess .60."""
    mechanism = LaplaceMechanism(0.1)
    expected = expected_scores(Design.of(SCHEMA, len(X), mechanism, True))[:3]
    test, labels = made_up(seed=1)
    fits = [model(epsilon=0.1).set_params(random_state=i).fit(X, Y) for i in range(5)]
    real = np.mean([each.score(test, labels) for each in fits])
    lost = model(epsilon=100.0).fit(X, Y).score(test, labels) - real
    assert 0 <= lost < 0.1
    assert np.interp(0.84, expected[:, 1], expected[:, 1] - expected[:, 0]) == pytest.approx(
        lost, abs=0.05
    )


@pytest.mark.worth
def test_a_plan_says_what_is_in_reach_and_fits_no_estimator(monkeypatch):
    private = model(SVC())
    plan, again = (private.plan(n_samples=3000) for _ in range(2))
    monkeypatch.setattr(SVC, "fit", None)
    said = " ".join(str(plan).split())
    assert "Below 20 only the majority is in reach, from 100 on the exact model" in said
    assert "where the exact model has" in said
    assert "a guess 0.50" in said
    assert "a guess 0.80" in said
    assert plan.expected_score.scoring == "accuracy"
    np.testing.assert_array_equal(plan.expected_score.private, again.expected_score.private)


@pytest.mark.worth
def test_expected_scores_are_read_at_a_stated_task_and_drawn():
    """The same tables as in the plan, so that one level of two has its scores."""
    plan = model().set_params(expect={"majority": 0.6, "exact": 0.8}).plan(n_samples=3000)
    score = plan.expected_score.at(majority=0.6, exact=0.8).score
    assert float(plan.expected_score) == score
    assert "if the majority is 0.60" in " ".join(str(plan).split())
    display = PrivacyUtilityDisplay.from_plan(plan, epsilons=[0.01, 1.0])
    assert display.scores[1, 0] == score
    assert display.scores[0, 0] < score - 0.05
    drawn = PrivacyUtilityDisplay.from_plan(model().plan(n_samples=3000), epsilons=[1.0])
    assert np.array_equal(drawn.scores[0], plan.expected_score.private)


def drawn_table(rng, n_classes, spread):
    law = rng.dirichlet(np.full(8, 2.0))[:, None] * rng.dirichlet(np.full(n_classes, 5.0))
    law *= np.exp(spread * rng.normal(size=law.shape))
    law /= law.sum()
    return law, rng.multinomial(20_000, law.ravel()).reshape(law.shape)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_information_and_log_odds_are_within_their_errors(n_classes):
    """Seeded; normal errors would be within two of their deviations in .95 of 60 tables."""
    rng, sd, within = np.random.default_rng(0), 30.0, []
    for i in range(60):
        law, table = drawn_table(rng, n_classes, [0.2, 0.5, 1.0][i % 3])
        noisy, sizes = table + rng.normal(scale=sd, size=table.shape), table.sum(axis=0)
        cells, classes = law.sum(axis=1, keepdims=True), law.sum(axis=0)
        bits, error = information(noisy, sizes, sd, False)
        known = np.sum(law * np.log2(law / cells / classes))
        odds, errors = log_odds(noisy, sizes, sd, False)
        true = np.log(law / classes)
        away = np.abs(odds - (true[:, 1:] - true[:, :1]))
        within.append([abs(bits - known) < 2 * error, np.mean(away < 2 * errors)])
        assert error < 0.3 * known + 0.02
    assert np.all(np.mean(within, axis=0) > 0.85)


def test_without_noise_the_information_is_that_of_the_table():
    _, table = drawn_table(np.random.default_rng(0), 3, 1.0)
    law = table / table.sum()
    known = np.sum(
        law * np.log2(law / law.sum(axis=1, keepdims=True) / law.sum(axis=0) + (law == 0))
    )
    bits, error = information(table, table.sum(axis=0), 0.0, False)
    assert bits == pytest.approx(known, rel=0.02)
    assert error < 0.02  # what the sampling of 20,000 records leaves open


def test_a_hidden_signal_may_be_there():
    """The noise is as large as the cells: the release says nothing, and its errors say so."""
    table = np.full((8, 2), 50.0)
    bits, error = information(table, table.sum(axis=0), 50.0, False)
    assert bits < 0.001
    assert error > 0.02
    assert np.all(log_odds(table, table.sum(axis=0), 50.0, False)[1] > 0.5)


def test_the_summary_ranks_the_columns(fitted, tmp_path):
    table = fitted.summary().to_frame()
    names = [name for name in table.index if name.startswith("information")]
    assert names == [f"information in bits[{name}]" for name in "abc"]
    bits, errors = table.loc[names, "value"], table.loc[names, "standard error"]
    assert bits.iloc[0] > 5 * errors.iloc[0] > 0
    assert bits.iloc[2] < 2 * errors.iloc[2]
    assert "may be 0" in table.loc[names[2], "note"]
    assert table.loc["b[u, no]", "standard error"] == fitted.oracle_.deviation_
    assert [*fitted.oracle_.information_] == ["a", "b", "c"]
    assert fitted.oracle_.guarantee_ == fitted.guarantee_
    fitted.save(tmp_path / "release")
    loaded = load(tmp_path / "release")
    assert str(loaded.summary()) == str(fitted.summary())
    assert loaded.oracle.information_ == fitted.oracle_.information_


def test_there_are_no_intervals_and_the_card_promises_none(fitted, tmp_path):
    for method in (fitted.predict_stability, lambda _: fitted.value_interval()):
        with pytest.raises(TypeError, match="Class tables have no intervals"):
            method(X)
    with pytest.raises(TypeError, match="leave 'n_draws' away"):
        fitted.save(tmp_path / "simulated", n_draws=9)
    fitted.save(tmp_path / "release")
    card = (tmp_path / "release" / "README.md").read_text()
    assert "predict_stability" not in card
    assert "information in bits" in card
    assert ".fit` would fit anew" in card


def test_released_models_say_how_many_columns_they_take(fitted):
    forest = model(RandomForestClassifier(5), schema=wide(2, 2))
    forest.fit(np.random.default_rng(0).random((500, 2)), np.arange(500) % 2)
    assert fitted.n_features_in_ == 3
    assert forest.n_features_in_ == 2


def test_a_search_costs_nothing_on_draws():
    with pytest.raises(TypeError, match="release_oracle: a search of scikit-learn on its draws"):
        PrivateSearchCV(model(), {"estimator__C": [0.1, 1.0]}).fit(X, Y)
    accountant = unlimited()
    released = oracle(accountant=accountant)
    pipeline = make_pipeline(released.encoder_, LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1.0]})
    search.fit(*released(5000, np.random.default_rng(0)))
    assert search.score(*made_up(seed=1)) > 0.75
    assert accountant.total().epsilon == 1.0


def test_an_audit_runs_the_release(fitted):
    with pytest.raises(TypeError, match="Use audit_epsilon"):
        audit_estimator(fitted, X, Y, record=0)
    schema = Schema({"x": Category([0, 1])}, classes=[0, 1])

    def run(last, n, rng):
        records, labels = np.append(np.zeros(19), last)[:, None], np.arange(20) % 2
        options = {"schema": schema, "mechanism": LaplaceMechanism(2.0), "accountant": unlimited()}
        found = [release_oracle(records, labels, **options) for _ in range(n)]
        return np.array([each.tables_["x"][0, 0] - each.tables_["x"][1, 0] for each in found])

    sizes = {"n_search": 100, "n_final": 50, "alpha": 1e-9}
    audit = audit_epsilon(run, [(0, 1)], claimed_epsilon=2.0, rng=0, **sizes)
    assert not audit.violated


def test_a_released_law_makes_gamma_no_promise_about_its_records():
    released = oracle(0.5)
    private = model(make_pipeline(released.encoder_, LogisticRegression(C=0.1)))
    sampler = SensitivitySampler(released, gamma=0.5, n_pairs=9, random_state=0)
    plan = private.set_params(sensitivity=sampler, release="predictions").plan(300)
    said = " ".join(str(plan.guarantee).split())
    assert "which are no draws of it: gamma says nothing about them" in said
    assert "both epsilons add up" in said
    read = SensitivityEstimate.from_dict(plan.sensitivity.to_dict())
    assert plan.sensitivity.oracle == read.oracle == released.description
    assert "no draws" not in str(released.guarantee_)
