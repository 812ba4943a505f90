"""Every release is paid for before private data is looked at, whoever makes it and where."""

import copy
import dataclasses
import gc
import multiprocessing
import os
import pickle
import signal
import sqlite3
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdp import (
    BudgetExceededError,
    ExponentialMechanism,
    GaussianMechanism,
    KnownSensitivity,
    LaplaceMechanism,
    LedgerError,
    PrivacyGuarantee,
    PrivateEstimator,
    PrivateEvaluationError,
    PrivateSearchCV,
    SensitivitySampler,
    UniformOracle,
    plan_release,
    release,
)
from skdp import plan as plan_module
from skdp.accounting import PrivacyAccountant, default_accountant
from skdp.displays import BudgetDisplay

X = np.random.default_rng(0).uniform(size=(60, 1))
Y = X[:, 0]
ORACLE = UniformOracle([(0, 1)], y_bounds=(0, 1))
KNOWN = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 1 / 60}


def ledger_of_ten():
    return PrivacyAccountant(":memory:", epsilon=10.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def ridge(accountant=None, epsilon=1.0, seed=0):
    return PrivateEstimator(
        Ridge(),
        mechanism=LaplaceMechanism(epsilon=epsilon),
        sensitivity=SensitivitySampler(ORACLE, gamma=0.05, n_pairs=19, random_state=seed),
        accountant=accountant,
    )


def test_every_kind_of_release_is_paid_for():
    accountant = PrivacyAccountant(":memory:", epsilon=10.0)
    model = ridge(accountant).fit(X, Y)
    release(np.mean, X, accountant=accountant, **KNOWN)
    plan = plan_release(np.mean, n_samples=60, like=X, **KNOWN)
    assert accountant.total().n_releases == 2  # a plan costs nothing
    released = plan.execute(X, accountant=accountant)
    assert released.budget == accountant.total() != model.budget_
    assert (released.budget.epsilon, released.budget.gamma) == (3.0, 0.05)
    rows = accountant.rows()
    assert [row["label"] for row in rows] == [
        "coef_, intercept_ of Ridge()",
        "numpy.mean",
        "numpy.mean",
    ]
    assert [row["law"] for row in rows] == ["laplace"] * 3
    assert rows[0]["n_samples"] == 60
    assert rows[0]["oracle"] == model.guarantee_.oracle


def test_the_target_is_not_called_when_the_budget_does_not_allow_it():
    accountant = PrivacyAccountant(":memory:", epsilon=1.5)
    calls = []

    def mean(X):
        calls.append(accountant.total().epsilon)
        return X.mean()

    plan = plan_release(mean, n_samples=60, like=X, **KNOWN)
    calls.clear()  # of the trial on made-up records
    plan.execute(X, accountant=accountant)
    assert calls == [1.0]  # paid before it was called
    with pytest.raises(BudgetExceededError):
        plan.execute(X, accountant=accountant)
    assert calls == [1.0]


def test_a_failure_has_been_paid_for_and_a_refusal_has_not():
    accountant = PrivacyAccountant(":memory:", epsilon=10.0)
    with pytest.raises(PrivateEvaluationError):
        release(lambda X: 1 / 0, X, accountant=accountant, **KNOWN)
    assert accountant.total().epsilon == 1.0
    plan = plan_release(np.mean, n_samples=60, like=X, **KNOWN)
    for options in ({"accountant": accountant}, {}):  # nor is it said to be charged to nobody
        with pytest.raises(ValueError, match="60 records"):
            plan.execute(X[1:], **options)
    assert accountant.total().epsilon == 1.0
    endless = PrivacyAccountant(":memory:", epsilon=np.inf)
    for epsilon in (np.inf, 1.0):
        given = KNOWN | {"mechanism": LaplaceMechanism(epsilon)}
        release(np.mean, X, accountant=endless, **given)
    assert endless.total().epsilon == np.inf


@pytest.mark.slow
def test_one_estimate_counts_its_gamma_for_each_release():
    once, twice = (PrivacyAccountant(":memory:", epsilon=10.0) for _ in range(2))
    plan = ridge().plan(60, like=(X, Y))
    for _ in range(2):
        plan.execute(X, Y, accountant=once)
    ridge(once, epsilon=2.0).set_params(sensitivity=plan.sensitivity).fit(X, Y)
    assert (once.total().epsilon, once.total().gamma, once.total().n_estimates) == (4.0, 0.15, 1)
    for seed in (0, 1, 1):
        ridge(twice, seed=seed).fit(X, Y)
    assert_allclose(twice.total().gamma, 0.15)
    assert twice.total().n_estimates == 2
    bound = KNOWN | {"sensitivity": KnownSensitivity(1 / 60, "l1", 60, gamma=0.1)}
    for _ in range(2):
        release(np.mean, X, accountant=once, **bound)
    assert_allclose(once.total().gamma, 0.35)
    # which estimate is shared would tell a choice
    chosen = dataclasses.replace(plan, n_alternatives=2)
    chosen.execute(X, Y, accountant=once)
    assert chosen.guarantee.gamma == pytest.approx(0.1)
    assert_allclose(once.total().gamma, 0.45)


def test_the_pairs_of_ten_columns_are_covered_together_as_often_as_counted():
    """Seeded; a count of .05 for all would be 15 standard errors too low, the sum is no less."""
    accountant, rng, n_trials = ledger_of_ten(), np.random.default_rng(0), 250
    sampler = SensitivitySampler(lambda n, rng: rng.normal(size=(n, 1)), n_pairs=19, gamma=0.05)
    missed = 0
    for trial in range(n_trials):
        sampled = sampler.set_params(random_state=trial).sample(np.mean, 10, "l1")
        changes = np.abs(rng.normal(size=(10, 2)) @ [0.1, -0.1])  # of the ten columns of a person
        missed += bool((changes > sampled.value).any())
    for _ in range(10):
        accountant.spend(PrivacyGuarantee(epsilon=1.0, gamma=0.05), sensitivity_key="mean")
    counted, deviation = accountant.total().gamma, np.sqrt(n_trials) / 2
    assert 0.05 * n_trials + 6 * deviation < missed < counted * n_trials


def search(model, n_jobs=2):
    return GridSearchCV(model, {"mechanism__epsilon": [0.5, 1.0]}, cv=2, n_jobs=n_jobs)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["multiprocessing", "loky"])
def test_a_search_in_workers_counts_in_a_file_or_is_refused(path, backend):
    """It counted in the memory of the worker alone, and the total was too small."""
    ledger = PrivacyAccountant(path, epsilon=100.0)
    with parallel_config(backend=backend), ledger.as_default("Monday") as monday:
        with pytest.raises(ValueError, match="worker process"):
            search(ridge()).fit(X, Y)
        assert ledger.total().n_releases == 0
        found = search(ridge(monday)).fit(X, Y)
    assert ledger.total() == found.best_estimator_.budget_
    assert ledger.total().epsilon == 3 + found.best_params_["mechanism__epsilon"]
    labels = [row["label"] for row in ledger.rows()]
    assert len(labels) == 5
    assert all(label.startswith("Monday: Ridge: ") for label in labels)
    # The folds have 30 records each, and the same draws: one estimate for each epsilon, as each has
    # a code of its own, and one for the refit. But each fit has records of its own.
    assert ledger.total().n_estimates == 3
    assert_allclose(ledger.total().gamma, 0.25)


@pytest.mark.slow
def test_a_search_beyond_the_limit_is_told_how_many_fits_it_needs():
    """It goes on with missing scores where scikit-learn is not asked to raise."""
    ledger = PrivacyAccountant(":memory:", epsilon=4.0)
    grid = GridSearchCV(ridge(ledger), {"estimator__alpha": [1.0, 2.0]}, cv=2)
    with pytest.raises(BudgetExceededError, match="error_score='raise'"):
        grid.fit(X, Y)
    assert ledger.total().epsilon == 4.0
    ledger = PrivacyAccountant(":memory:", epsilon=1.0)
    with pytest.raises(BudgetExceededError, match="for each fold and once more"):
        cross_val_score(ridge(ledger), X, Y, cv=5, error_score="raise")
    assert ledger.total().epsilon == 1.0


def test_copies_share_the_budget_and_are_read_where_it_is_not(path):
    accountant = PrivacyAccountant(path, epsilon=3.0)
    model = ridge(accountant)
    for each in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        data = pickle.dumps(each.fit(X, Y))
    assert accountant.total().epsilon == 3.0
    with pytest.raises(BudgetExceededError, match="Nothing is left"):
        model.fit(X, Y)
    assert not hasattr(model, "estimator_")
    del accountant, model, each
    gc.collect()
    path.unlink()
    model = pickle.loads(data)
    assert model.predict(X).shape == (60,)
    with pytest.raises(LedgerError, match="unable to open"):
        model.fit(X, Y)
    assert not path.exists()


def test_without_an_accountant_the_process_counts():
    before = default_accountant().total()
    model = ridge().fit(X, Y)
    assert default_accountant().total() == model.budget_
    assert model.budget_.n_releases == before.n_releases + 1
    html = model._repr_html_()
    together = "no ledger. With those of its process that were charged to none before: (epsilon="
    assert model._repr_mimebundle_()["text/html"].count(together) == html.count(together) == 1
    assert "<p>" not in ridge()._repr_html_()


def test_who_reads_what_was_released_is_told_of_the_ledger_or_that_there_is_none(tmp_path):
    """Whether or not it is entered afterwards, the card cannot know it."""
    ledger = PrivacyAccountant(tmp_path / "week.db", epsilon=9.0)
    before = release(np.mean, X, **KNOWN, accountant=ledger)
    with pytest.warns(UserWarning, match="charged to no budget"):
        beside = release(np.mean, X, **KNOWN)
    ledger.spend(beside.guarantee)
    after = release(np.mean, X, **KNOWN, accountant=ledger)
    cards = []
    for name, each in zip("abc", (before, beside, after), strict=True):
        each.save(tmp_path / name)
        cards.append((tmp_path / name / "README.md").read_text())
    assert f"With all earlier releases of its ledger: {before.budget}." in cards[0]
    assert "It was charged to no ledger." in cards[1]
    assert "its ledger" not in cards[1]
    assert f"With all earlier releases of its ledger: {after.budget}." in cards[2]
    assert after.budget.n_releases == 3


def test_what_a_caller_asserts_is_counted(tmp_path):
    ledger = PrivacyAccountant(tmp_path / "week.db", epsilon=9.0)
    ledger.spend(PrivacyGuarantee(1.0, assumed="sensitivity 4 known on paper"))
    assert ledger.total().assumed == ()
    for number in (1, 2):
        release(np.mean, X, **KNOWN | {"sensitivity": 0.5}, accountant=ledger)
        said = f"{number} by what the caller asserts"
        assert ledger.total().assumed == (said,)
        assert said in str(PrivacyAccountant.open(ledger.path))
    series = PrivacyGuarantee(0.1, assumed="sensitivity 4 asserted by the caller")
    ledger.spend(series, n_releases=3)
    assert ledger.total().assumed == ("5 by what the caller asserts",)
    new = PrivacyAccountant(tmp_path / "more.db", epsilon=20.0)
    with pytest.raises(TypeError, match=r"spent elsewhere PrivacyGuarantee\(epsilon=.*BudgetTotal"):
        new.spend(ledger.total())
    spent = ledger.total()
    new.spend(PrivacyGuarantee(spent.epsilon, spent.delta, spent.gamma))
    assert new.total().epsilon == spent.epsilon


def test_a_release_beside_an_open_budget_is_pointed_out_once_for_each_line():
    plan = ridge().plan(60, like=(X, Y))
    releases = (
        lambda: ridge().fit(X, Y),
        lambda: release(np.mean, X, **KNOWN),
        lambda: plan.execute(X, Y),
    )
    ledger = PrivacyAccountant(":memory:", epsilon=5.0)
    with pytest.raises(UserWarning, match="charged to no budget"):  # here an error: asked again
        releases[1]()
    for attempt in releases:
        with pytest.warns(
            UserWarning, match=r"although PrivacyAccountant\(.* was opened"
        ) as record:
            attempt()
        assert record[0].filename == __file__
        attempt()
    with ledger.as_default():
        plan.execute(X, Y)
    plan.execute(X, Y, accountant=default_accountant())
    del ledger
    gc.collect()
    plan.execute(X, Y)


def test_a_plan_of_a_model_is_paid_for_by_the_budget_of_the_model(tmp_path):
    """Also one that another process has unpickled, and after a fit."""
    ledger = PrivacyAccountant(tmp_path / "ledger.db", epsilon=3.0)
    model = PrivateEstimator(Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=0.1)
    model.set_params(accountant=ledger)
    plan = model.plan(len(X), like=(X, Y))
    plan.execute(X, Y)
    copied = pickle.loads(pickle.dumps(plan))
    copied.execute(X, Y)
    model.fit(X, Y)
    assert ledger.total().epsilon == 3.0
    for each in (plan, copied, model.plan_):
        with pytest.raises(BudgetExceededError):
            each.execute(X, Y)
    other = PrivacyAccountant(":memory:", epsilon=1.0)
    plan.execute(X, Y, accountant=other)
    assert other.total().epsilon == 1.0


def test_what_no_budget_pays_for_is_refused_before_pairs_are_sampled():
    def refuse(n_samples, rng):
        raise AssertionError("was drawn from")

    sampler = SensitivitySampler(refuse, gamma=0.1)
    for mechanism, limits in (
        (LaplaceMechanism(2.0), {"epsilon": 1.0}),
        (GaussianMechanism(0.5, 1e-5), {"epsilon": 1.0, "delta": 1e-6}),
        (LaplaceMechanism(0.5), {"epsilon": 1.0, "gamma": 0.05}),
    ):
        given = {"mechanism": mechanism, "sensitivity": sampler}
        ledger = PrivacyAccountant(":memory:", **limits)
        model = PrivateEstimator(Ridge(), accountant=ledger, **given)
        choice = {"mechanism": ExponentialMechanism(0.75), "sensitivity": sampler}
        search = PrivateSearchCV(model, {"estimator__alpha": [1.0]}, **choice)
        released = partial(release, np.mean, accountant=ledger, **given)
        for attempt in (partial(model.fit, y=Y), released, partial(search.fit, y=Y)):
            with pytest.raises(BudgetExceededError):
                attempt(X)
        assert not ledger.rows()
    # choice and fit are refused together
    choice = {"mechanism": ExponentialMechanism(0.75), "sensitivity": 0.5}
    ledger = PrivacyAccountant(":memory:", epsilon=9.0, gamma=0.05)
    model = PrivateEstimator(Ridge(), accountant=ledger, **given)
    with pytest.raises(BudgetExceededError, match=r"asked for was .* for 2 releases"):
        PrivateSearchCV(model, {"estimator__alpha": [1.0, 2.0]}, **choice).fit(X, Y)


def kill(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def fit_and_be_killed(path, when, log):
    """In a process that was forked off, so that what is replaced here is so nowhere else."""
    evaluate = plan_module.evaluate_privately

    def evaluate_and_kill(*args, **kwargs):
        if when == "between":
            kill()
        value = evaluate(*args, **kwargs)
        log.write_text("released")
        kill()
        return value

    plan_module.evaluate_privately = evaluate_and_kill
    if when == "before":
        PrivacyAccountant.spend = kill
    accountant = PrivacyAccountant(path, epsilon=10.0)
    PrivateEstimator(Ridge(), accountant=accountant, **KNOWN).fit(X, Y)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from 3.12 on, beside threads
@pytest.mark.parametrize(("when", "n_spent"), [("before", 0), ("between", 1), ("after", 1)])
def test_a_kill_at_each_step_of_a_fit(path, tmp_path, when, n_spent):
    log = tmp_path / "log"
    context = multiprocessing.get_context("fork")
    process = context.Process(target=fit_and_be_killed, args=(path, when, log))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert log.exists() == (when == "after")
    assert PrivacyAccountant(path, epsilon=10.0).total().n_releases == n_spent
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_nothing_private_is_in_the_ledger(path, leak_search):
    model = ridge(PrivacyAccountant(path, epsilon=3.0)).fit(X, Y)
    exact = Ridge().fit(X, Y)
    private = [*X.ravel(), *exact.coef_, exact.intercept_]
    files = [path, *path.parent.glob("ledger.db-*")]
    assert leak_search(b"".join(file.read_bytes() for file in files), private) == []
    assert leak_search(model, private) == []
    assert os.path.getsize(path) > 0


def half(**details):
    return {"guarantee": PrivacyGuarantee(epsilon=0.5, gamma=0.1)} | details


def test_a_rehearsal_refuses_what_is_not_allowed_together_and_spends_nothing():
    accountant = PrivacyAccountant(":memory:", epsilon=1.2, gamma=0.2)
    accountant.rehearse(half(), half())
    said = r"spent is \(epsilon=0\) for 0 .* was \(epsilon=1.5, gamma=0.3\) for 3 "
    with pytest.raises(BudgetExceededError, match=said) as caught:
        accountant.rehearse(half(), half(sensitivity_key="a"), half(sensitivity_key="a"))
    assert caught.value.spent.epsilon == 0
    assert caught.value.left == 1.2
    assert accountant.rows() == []
    accountant.spend(**half())
    accountant.rehearse(half())
    with pytest.raises(BudgetExceededError):
        accountant.rehearse(half(), half())
    assert accountant.total().epsilon == 0.5
    other = PrivacyAccountant(":memory:", epsilon=9.0, gamma=0.1)
    other.rehearse(half())
    with pytest.raises(BudgetExceededError):
        other.rehearse(half(sensitivity_key="a"), half(sensitivity_key="a"))
    with pytest.raises(TypeError, match="must be a PrivacyGuarantee"):
        other.rehearse({"guarantee": 1.0})


def test_the_display_of_a_budget_shows_what_is_left(path):
    plt = pytest.importorskip("matplotlib.pyplot", reason="needs the 'plot' extra")
    accountant = PrivacyAccountant(path, epsilon=2.0)
    for part in ("north", "south"):
        label = "Thursday, by branch: mean_of_loans"  # cut alike, and no two are called so
        accountant.part("hospital", part).spend(**half(label=label))
    accountant.spend(**half())
    display = BudgetDisplay.from_accountant(PrivacyAccountant.open(path)).plot()
    assert_allclose(display.left, [2.0, 1.5, 1.5, 1.0])
    assert display.left[-1] == accountant.remaining()
    assert_allclose(display.line_.get_ydata(), display.left)
    assert display.ax_.get_title() == "left: epsilon=1 for one release, 0.1 for each of ten"
    names = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert names[0] == "start"
    assert len(names) == 4
    display.labels[:] = ["a" * 500, "mean", ""]
    names = [label.get_text() for label in display.plot().ax_.get_xticklabels()]
    assert names[1:] == ["a" * 32 + " ...", "mean", "release 3"]
    plt.close("all")
    with pytest.raises(ValueError, match="limit"):
        BudgetDisplay.from_accountant(PrivacyAccountant(":memory:", epsilon=np.inf))
