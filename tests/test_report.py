"""The report of a release, for people who must approve it."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from skdp import (
    ClassTables,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Number,
    PrivacyGuarantee,
    PrivateEstimator,
    PublicDataOracle,
    Schema,
    SensitivitySampler,
    UniformOracle,
    load,
    release,
)
from skdp.mechanisms.gaussian import gaussian_sigma
from skdp.results.report import ASKED, PUBLISHED, make_report

X = np.random.default_rng(0).uniform(size=(100, 1))


def report_of(mechanism):
    return release(np.mean, X, mechanism=mechanism, sensitivity=0.01).report()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace_noise_has_its_closed_form(epsilon):
    """Of two Laplace laws epsilon apart: the best test is a threshold."""
    report = report_of(LaplaceMechanism(epsilon))
    assert report.advantage == pytest.approx(1 - math.exp(-epsilon / 2), abs=1e-3 * epsilon)
    for rate, found in report.true_positive_rates.items():
        assert rate < math.exp(-epsilon) / 2
        assert found == pytest.approx(rate * math.exp(epsilon), rel=1e-3)
    assert report.suspicions[0.5] == pytest.approx(1 / (1 + math.exp(-epsilon)), abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_gaussian_noise_has_its_closed_form(epsilon):
    report, mu = report_of(GaussianMechanism(epsilon, 1e-5)), 1 / gaussian_sigma(epsilon, 1e-5)
    assert report.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, abs=1e-6)
    for rate, found in report.true_positive_rates.items():
        assert found == pytest.approx(norm.cdf(norm.ppf(rate) + mu), abs=1e-6)


def test_numbers_are_those_of_riskcal():
    """Of Gaussian noise, and of an epsilon and a delta of which no more is known."""
    pytest.importorskip("riskcal", reason="it is in no extra: dp-accounting pins attrs")
    from riskcal import analysis

    mu = 1 / gaussian_sigma(1.0, 1e-5)
    of_noise = report_of(GaussianMechanism(1.0, 1e-5))
    of_sum = make_report("", of_noise.guarantee, None, of_noise.budget)
    assert of_noise.advantage == pytest.approx(analysis.get_advantage_from_gdp(mu), abs=1e-6)
    assert of_sum.advantage == pytest.approx(analysis.get_advantage_from_adp(1.0, 1e-5), abs=1e-6)
    for rate, found in of_noise.true_positive_rates.items():
        assert found == pytest.approx(1 - analysis.get_beta_from_gdp(mu, rate), abs=1e-6)
        expected = 1 - analysis.get_beta_from_adp(1.0, 1e-5, rate)
        assert of_sum.true_positive_rates[rate] == pytest.approx(expected, abs=1e-6)


def test_what_is_known_of_a_law_is_used_and_no_more():
    """Two releases of epsilon 1/2 each, or any mechanism of epsilon 1: randomized response."""
    scores = release(
        lambda X: np.array([0.0, 1.0]), X, mechanism=ExponentialMechanism(1.0), sensitivity=1.0
    )
    assert scores.report().advantage == pytest.approx(math.tanh(0.5))
    assert scores.report().true_positive_rates[0.01] == pytest.approx(0.01 * math.e)


def test_the_report_of_a_model_says_what_is_open(tmp_path):
    table, labels = load_iris(return_X_y=True)
    sampler = SensitivitySampler(PublicDataOracle(table[::2], labels[::2]), gamma=0.2)
    model = PrivateEstimator(
        LogisticRegression(max_iter=1000),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler,
        random_state=0,
    ).fit(table[1::2], labels[1::2])
    model.save(tmp_path)
    assert "For 20% of the pairs of tables" in (tmp_path / "README.md").read_text()
    text = str(model.report(audit="no violation found\nat all"))
    assert text.startswith("Privacy report: LogisticRegression, 75 private records\n")
    for said in ("For 20% of the pairs", "fail for 20%", "has a seed", "no violation found"):
        assert said in text
    assert "at all" not in text
    assert str(load(tmp_path).report()) == str(model.report())
    assert max(map(len, text.split())) < 80


def test_the_report_is_a_text_a_page_and_json(tmp_path):
    report = report_of(LaplaceMechanism(1.0))
    assert json.loads(report.to_json()) == report.to_dict()
    page, text = report.to_html(), str(report)
    assert report._repr_html_() in page
    assert report.to_html(tmp_path / "page") == page == (tmp_path / "page").read_text("utf-8")
    assert "<script" not in page
    found = re.findall(r"<td>([^<]*)</td><td>([^<]*)</td>", page)
    assert len(found) == page.count("<tr>") == 10
    assert all(f"{said:<66}{number:>8}" in text for said, number in found)
    assert ("Right guesses which of two candidates the record is (a coin: 50%)", "69.68%") in found
    made = make_report("<b>", report.guarantee, None, report.budget, ("<i>",), contact="<u>")
    assert not {"<b>", "<i>", "<u>"} & set(re.findall("<.*?>", made.to_html()))


def fit_tables():
    """Fit by class tables, of which no public record is known."""
    schema = Schema({"x": Number(0, 1)}, classes=[0, 1])
    model = PrivateEstimator(
        LogisticRegression(), mechanism=LaplaceMechanism(1.0), sensitivity=ClassTables(schema)
    )
    return model.fit(pd.DataFrame(X, columns=["x"]), np.arange(100) % 2)


def release_mean(sensitivity, **options):
    how = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sensitivity, **options}
    return release(lambda X: X.mean(), X, **how)


WAYS = {
    "sampled": lambda: release_mean(SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05)),
    "known": lambda: release_mean(0.01),
    "aggregate": lambda: release_mean("aggregate", ranges=(0, 1)),
    "tables": fit_tables,
}
JARGON = ("positive rate", "dvantage", "lambda", "neighbor", "suspicion")


@pytest.mark.filterwarnings("ignore:The release may be worth no more")  # of so few records
@pytest.mark.parametrize("way", WAYS)
def test_the_report_asks_the_owner_by_name_and_speaks_plainly(way):
    """On one page, for each way to a promise."""
    stated = {name: f"as we say of {name}" for name in ASKED}
    released = WAYS[way]()
    asking, told = str(released.report()), str(released.report(**stated))
    for name, said in stated.items():
        assert f'report({name}="...")' in " ".join(asking.split())
        assert said in told
    assert "please" not in told
    plain, experts = told.split("\nFor experts\n")
    assert [word for word in JARGON if word in plain] == []
    words = " ".join(plain.split())  # where the word is first said, it is explained
    assert words.find("oracle") == words.find("oracle), which stands for the private ones")
    named = "LogisticRegression" if way == "tables" else "a function"
    assert f"{named}, 100 private records" in words
    assert len(told.splitlines()) <= 75
    is_sampled = way == "sampled"
    for said in ("gamma", "at risk", "public source", "pairs of tables"):
        assert (said in plain) == is_sampled
    assert ("holds for every record" in plain) == (not is_sampled)
    assert ("UniformOracle" in experts) == is_sampled


def test_the_report_places_the_epsilon_among_those_that_the_guide_lists():
    page = (Path(__file__).parents[1] / "docs/user_guide/choosing.md").read_text()
    assert all(f"| {number} |" in page for number, _ in PUBLISHED.values())
    report = report_of(LaplaceMechanism(1.0))
    for epsilon, place in {0.5: 0, 2.0: 1, 5.0: 2, 20.0: 3}.items():
        text = str(replace(report, guarantee=PrivacyGuarantee(epsilon)))
        listed = re.findall(r"^  (Google|Apple|Israel|This release)", text, re.M)
        assert len(listed) == 4
        assert listed[place] == "This release"


def test_the_report_speaks_of_persons_where_the_promise_does():
    report = report_of(LaplaceMechanism(1.0))
    promise = PrivacyGuarantee(1.0, n_samples=7, gamma=0.05, unit="person")
    plain = " ".join(str(replace(report, guarantee=promise)).split("\nOther releases\n")[0].split())
    for said in ("one of the 7 persons is replaced by another with all records", "one person"):
        assert said in plain
    for said in ("one record", "the record", "other records", "Records found"):
        assert said not in plain.split("What is promised")[1]


def test_what_the_owner_states_is_text():
    released = release_mean(0.01)
    with pytest.raises(TypeError, match="'contact' parameter of report must be a string"):
        released.report(contact=3)
    assert released.report().to_dict()["stated"] == dict.fromkeys(ASKED, "")
    assert released.report(title="The mean").title == "The mean"


def test_an_exact_release_hides_nothing():
    report = report_of(LaplaceMechanism(math.inf))
    assert report.advantage == 1.0
    assert set(report.true_positive_rates.values()) == {1.0}
    assert "Nothing is hidden" in str(report)


def test_a_delta_leaves_room_for_larger_suspicions():
    """Gaussian noise of the same epsilon and delta exceeds epsilon more often than by delta."""
    of_noise = report_of(GaussianMechanism(1.0, 5e-4))
    of_sum = make_report("", of_noise.guarantee, None, of_noise.budget)
    for before, after in of_noise.suspicions.items():
        assert after <= of_sum.suspicions[before] < 1
    nothing = make_report("", PrivacyGuarantee(1.0, delta=0.01), None, of_noise.budget)
    assert set(nothing.suspicions.values()) == {1.0}


@pytest.mark.parametrize("kind", [LaplaceMechanism, GaussianMechanism])
def test_a_mechanism_with_a_release_of_its_own_has_no_law_of_another(kind):
    class Own(kind):
        def release(self, value, sensitivity, rng=None):
            return np.sign(super().release(value, sensitivity, rng))

    options = {} if kind is LaplaceMechanism else {"delta": 1e-5}
    assert kind(1.0, **options).noise_law is not None
    assert Own(1.0, **options).noise_law is None
