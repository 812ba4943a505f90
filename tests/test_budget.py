"""Every release is paid for before private data is looked at, whoever makes it and where."""

import copy
import gc
import os
import pickle
import subprocess
import sys
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
from skdp.accounting import PrivacyAccountant, default_accountant

X = np.random.default_rng(0).uniform(size=(60, 1))
Y = X[:, 0]
ORACLE = UniformOracle([(0, 1)], y_bounds=(0, 1))
KNOWN = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 1 / 60}


def ledger_of(epsilon=10.0, **limits):
    return PrivacyAccountant(":memory:", epsilon=epsilon, **limits)


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
    accountant = ledger_of()
    model = ridge(accountant).fit(X, Y)
    release(np.mean, X, accountant=accountant, **KNOWN)
    plan = plan_release(np.mean, n_samples=60, like=X, **KNOWN)
    assert accountant.total().n_releases == 2  # a plan costs nothing
    released = plan.execute(X, accountant=accountant)
    assert released.budget == accountant.total() != model.budget_
    assert (released.budget.epsilon, released.budget.gamma) == (3.0, 0.05)
    rows = accountant.rows()
    labels = ["coef_, intercept_ of Ridge()", *["numpy.mean"] * 2]
    assert [row["label"] for row in rows] == labels
    assert [row["law"] for row in rows] == ["laplace"] * 3
    assert rows[0]["gamma"] == model.guarantee_.gamma == 0.05


def test_the_target_is_not_called_when_the_budget_does_not_allow_it(path):
    accountant, calls = PrivacyAccountant(path, epsilon=1.5), []

    def mean(X):
        calls.append(PrivacyAccountant.open(path).total().epsilon)
        return X.mean()

    plan = plan_release(mean, n_samples=60, like=X, **KNOWN)
    calls.clear()  # of the trial on made-up records
    plan.execute(X, accountant=accountant)
    assert calls == [1.0]  # paid, and on the disk, before it was called
    with pytest.raises(BudgetExceededError):
        plan.execute(X, accountant=accountant)
    assert calls == [1.0]


def test_a_failure_has_been_paid_for_and_a_refusal_has_not():
    accountant, endless = ledger_of(), ledger_of(np.inf)
    with pytest.raises(PrivateEvaluationError):
        release(lambda X: 1 / 0, X, accountant=accountant, **KNOWN)
    assert accountant.total().epsilon == 1.0
    plan = plan_release(np.mean, n_samples=60, like=X, **KNOWN)
    for options in ({"accountant": accountant}, {}):  # nor is it said to be charged to nobody
        with pytest.raises(ValueError, match="60 records"):
            plan.execute(X[1:], **options)
    assert accountant.total().epsilon == 1.0
    for epsilon in (np.inf, 1.0):
        given = KNOWN | {"mechanism": LaplaceMechanism(epsilon)}
        release(np.mean, X, accountant=endless, **given)
    assert endless.total().epsilon == np.inf


@pytest.mark.slow
def test_one_estimate_counts_its_gamma_for_each_release():
    once = ledger_of()
    plan = ridge().plan(60, like=(X, Y))
    for _ in range(2):
        plan.execute(X, Y, accountant=once)
    ridge(once, epsilon=2.0).set_params(sensitivity=plan.sensitivity).fit(X, Y)
    assert (once.total().epsilon, once.total().gamma) == (4.0, 0.15)
    bound = KNOWN | {"sensitivity": KnownSensitivity(1 / 60, "l1", 60, gamma=0.1)}
    for _ in range(2):
        release(np.mean, X, accountant=once, **bound)
    assert_allclose(once.total().gamma, 0.35)


def test_the_pairs_of_ten_columns_are_covered_together_as_often_as_counted():
    """Seeded; a count of .05 for all would be 15 standard errors too low, the sum is no less."""
    accountant, rng, n_trials = ledger_of(), np.random.default_rng(0), 250
    sampler = SensitivitySampler(lambda n, rng: rng.normal(size=(n, 1)), n_pairs=19, gamma=0.05)
    missed = 0
    for trial in range(n_trials):
        sampled = sampler.set_params(random_state=trial).sample(np.mean, 10, "l1")
        changes = np.abs(rng.normal(size=(10, 2)) @ [0.1, -0.1])  # of the ten columns of a person
        missed += bool((changes > sampled.value).any())
    for _ in range(10):
        accountant.spend(PrivacyGuarantee(epsilon=1.0, gamma=0.05))
    counted, deviation = accountant.total().gamma, np.sqrt(n_trials) / 2
    assert 0.05 * n_trials + 6 * deviation < missed < counted * n_trials


def search(model, n_jobs=2):
    return GridSearchCV(model, {"mechanism__epsilon": [0.5, 1.0]}, cv=2, n_jobs=n_jobs)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["multiprocessing", "loky"])
def test_a_search_in_workers_counts_in_a_file_or_is_refused(path, backend):
    """It counted in the memory of the worker alone, and the total was too small."""
    ledger = PrivacyAccountant(path, epsilon=100.0)
    with parallel_config(backend=backend):
        with pytest.raises(ValueError, match="worker process"):
            search(ridge()).fit(X, Y)
        assert ledger.total().n_releases == 0
        with ledger.as_default("Monday"):
            found = search(ridge()).fit(X, Y)
    assert ledger.total() == found.best_estimator_.budget_
    assert ledger.total().epsilon == 3 + found.best_params_["mechanism__epsilon"]
    labels = [row["label"] for row in ledger.rows()]
    assert len(labels) == 5
    assert all(label.startswith("Monday: Ridge: ") for label in labels)
    assert_allclose(ledger.total().gamma, 0.25)


ELSEWHERE = """
import pickle, sys
from sklearn.base import clone
from skdp import LedgerError
from skdp.accounting import default_accountant
X, Y, *given = pickle.load(sys.stdin.buffer)
for model, plan, search in given:
    for attempt in (model.fit, clone(model).fit, plan.execute, search.fit):
        try:
            attempt(X, Y)
        except LedgerError as error:
            print(str(error)[:18], "accountant" in str(error))
print(default_accountant().total().n_releases)
"""


@pytest.mark.slow
def test_a_program_of_its_own_charges_the_block_of_a_pickle_or_refuses(path):
    """As a worker of Ray or Dask, or as a script that reads the file on another day."""
    model, grid = ridge(), {"estimator__alpha": [1.0]}
    given = model, model.plan(60), PrivateSearchCV(model, grid, n_runs=1, y_range=(0, 1))
    file, in_memory = PrivacyAccountant(path, epsilon=99.0), ledger_of()
    pickled = [pickle.dumps(given)]
    for ledger in (file, in_memory):
        with ledger.as_default("Monday"):
            pickled.append(pickle.dumps(given))
    data = pickle.dumps([X, Y, *map(pickle.loads, pickled)])
    said = subprocess.run([sys.executable, "-c", ELSEWHERE], input=data, capture_output=True)
    assert said.stdout.decode().split("\n") == [*["A ledger in memory True"] * 4, "4", ""]
    assert [row["label"][:8] for row in file.rows()] == ["Monday: "] * 4
    assert in_memory.total().n_releases == 0
    copied, _, _ = pickle.loads(pickled[2])  # in this process it is there
    copied.fit(X, Y)
    assert in_memory.total().n_releases == 1
    assert model.accountant is None


@pytest.mark.slow
def test_a_search_beyond_the_limit_is_told_how_many_fits_it_needs():
    """It goes on with missing scores where scikit-learn is not asked to raise."""
    ledger = ledger_of(4.0)
    grid = GridSearchCV(ridge(ledger), {"estimator__alpha": [1.0, 2.0]}, cv=2)
    with pytest.raises(BudgetExceededError, match=r"Accountant\.check.* error_score='raise'"):
        grid.fit(X, Y)
    assert ledger.total().epsilon == 4.0
    ledger = ledger_of(1.0)
    with pytest.raises(BudgetExceededError, match="for each fold and once more"):
        cross_val_score(ridge(ledger), X, Y, cv=5, error_score="raise")
    assert ledger.total().epsilon == 1.0


@pytest.mark.parametrize("kind", ["known", "sampled", "estimate"])
def test_a_check_admits_as_many_fits_as_the_budget_does(kind):
    """Sampled or settled, the gamma of .05 counts in each fit: three fit in .15."""
    model = ridge().set_params(sensitivity=0.1) if kind == "known" else ridge()
    if kind == "estimate":
        model.set_params(sensitivity=model.plan(60, like=(X, Y)).sensitivity)
    ledger, n_fitting = ledger_of(4.0, gamma=0.15), 4 if kind == "known" else 3
    model.set_params(accountant=ledger)
    for n_left in (n_fitting, n_fitting - 1):
        ledger.check(model, n_left)
        with pytest.raises(BudgetExceededError, match=f"of which {n_left} would fit"):
            ledger.check(model, 9)
        model.fit(X, Y)
    assert ledger.total().n_releases == 2
    with pytest.raises(TypeError, match="must be a PrivateEstimator"):
        ledger.check(Ridge(), 1)
    with pytest.raises(TypeError, match="must be a Mechanism"):
        ledger.check(model.set_params(mechanism=1.0), 1)
    with pytest.raises(ValueError, match="'n_fits'"):
        ledger.check(model, 0)


def test_copies_share_the_budget_and_are_read_where_it_is_not(path):
    accountant = PrivacyAccountant(path, epsilon=3.0)
    model = ridge(accountant)
    for each in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        data = pickle.dumps(each.fit(X, Y))
    assert accountant.total().epsilon == 3.0
    with pytest.raises(BudgetExceededError, match="Left is nothing"):
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
    assert str(default_accountant()).endswith(
        "left: epsilon=inf for one release, inf for each of ten"
    )
    html = model._repr_html_()
    together = (
        "no ledger. All such releases of its process, up to this one, cost together (epsilon="
    )
    assert model._repr_mimebundle_()["text/html"].count(together) == html.count(together) == 1
    assert "<p>" not in ridge()._repr_html_()


def test_who_reads_what_was_released_is_told_of_the_ledger_or_that_there_is_none(tmp_path):
    ledger = PrivacyAccountant(tmp_path / "week.db", epsilon=9.0)
    before = release(np.mean, X, **KNOWN, accountant=ledger)
    with pytest.warns(UserWarning, match="charged to no budget"):
        beside = release(np.mean, X, **KNOWN)
    ledger.spend(beside.guarantee)
    after = release(np.mean, X, **KNOWN, accountant=ledger)
    assert after.budget.n_releases == 3
    for name, each in zip("abc", (before, beside, after), strict=True):
        each.save(tmp_path / name)
        card = (tmp_path / name / "README.md").read_text()
        charged = f"With all earlier releases of its ledger: {each.budget}." in card
        assert charged == (each is not beside) == ("charged to no ledger." not in card)


def test_what_a_caller_asserts_is_counted(tmp_path):
    ledger = PrivacyAccountant(tmp_path / "week.db", epsilon=9.0)
    ledger.spend(PrivacyGuarantee(1.0, assumed="sensitivity 4 known on paper"))
    assert ledger.total().assumed == ()
    for number in (1, 2):
        release(np.mean, X, **KNOWN | {"sensitivity": 0.5}, accountant=ledger)
        said = f"{number} with a sensitivity that the caller asserts"
        assert ledger.total().assumed == (said,)
        assert said in str(PrivacyAccountant.open(ledger.path))
    with pytest.raises(TypeError, match=r"spent elsewhere PrivacyGuarantee\(epsilon=.*BudgetTotal"):
        ledger.spend(ledger.total())


def test_a_release_beside_an_open_budget_is_pointed_out_once_for_each_line():
    plan = ridge().plan(60, like=(X, Y))
    releases = (
        lambda: ridge().fit(X, Y),
        lambda: release(np.mean, X, **KNOWN),
        lambda: plan.execute(X, Y),
    )
    ledger = ledger_of()
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
    other = ledger_of(1.0)
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
        ledger = ledger_of(**limits)
        model = PrivateEstimator(Ridge(), accountant=ledger, **given)
        search = PrivateSearchCV(model, {"estimator__alpha": [1.0]}, y_range=(0, 1))
        released = partial(release, np.mean, accountant=ledger, **given)
        for attempt in (partial(model.fit, y=Y), released, partial(search.fit, y=Y)):
            with pytest.raises(BudgetExceededError):
                attempt(X)
        assert not ledger.rows()


def test_nothing_private_is_in_the_ledger(path, leak_search):
    model = ridge(PrivacyAccountant(path, epsilon=3.0)).fit(X, Y)
    exact = Ridge().fit(X, Y)
    private = [*X.ravel(), *exact.coef_, exact.intercept_]
    files = [path, *path.parent.glob("ledger.db-*")]
    assert leak_search(b"".join(file.read_bytes() for file in files), private) == []
    assert leak_search(model, private) == []
    assert os.path.getsize(path) > 0
