"""The report of a release, for people who must approve it."""

import json
import math
import re

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from skdp import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PrivacyGuarantee,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    load,
    release,
)
from skdp.mechanisms.gaussian import gaussian_sigma
from skdp.results.report import make_report

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
    of_sum = make_report("", of_noise.guarantee, None, of_noise.budget, ())
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
    assert "all but 20% of the pairs" in (tmp_path / "README.md").read_text()
    text = str(model.report(audit="no violation found\nat all"))
    for said in ("all but 20%", "has a seed", "no violation found", "Privacy report: Logistic"):
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
    assert len(found) == page.count("<tr>") == 7
    assert all(f"{said:<66}{number:>8}" in text for said, number in found)
    assert dict(found)["Advantage: true positive rate minus false positive rate"] == "39.35%"
    made = make_report("<b>", report.guarantee, None, report.budget, ("<i>",))
    assert not {"<b>", "<i>"} & set(re.findall("<.*?>", made.to_html()))


def test_an_exact_release_hides_nothing():
    report = report_of(LaplaceMechanism(math.inf))
    assert report.advantage == 1.0
    assert set(report.true_positive_rates.values()) == {1.0}
    assert "Nothing is hidden" in str(report)


def test_a_delta_leaves_room_for_larger_suspicions():
    """Gaussian noise of the same epsilon and delta exceeds epsilon more often than by delta."""
    of_noise = report_of(GaussianMechanism(1.0, 5e-4))
    of_sum = make_report("", of_noise.guarantee, None, of_noise.budget, ())
    for before, after in of_noise.suspicions.items():
        assert after <= of_sum.suspicions[before] < 1
    nothing = make_report("", PrivacyGuarantee(1.0, delta=0.01), None, of_noise.budget, ())
    assert set(nothing.suspicions.values()) == {1.0}


@pytest.mark.parametrize("kind", [LaplaceMechanism, GaussianMechanism])
def test_a_mechanism_with_a_release_of_its_own_has_no_law_of_another(kind):
    class Own(kind):
        def release(self, value, sensitivity, rng=None):
            return np.sign(super().release(value, sensitivity, rng))

    options = {} if kind is LaplaceMechanism else {"delta": 1e-5}
    assert kind(1.0, **options).noise_law is not None
    assert Own(1.0, **options).noise_law is None
