"""The pages that reproduce the papers assert their own numbers; here is what all of them share."""

import math
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "papers"


@pytest.mark.parametrize(
    ("epsilon0", "epsilon", "least"),
    [(0.5, 0.274115, 37805.86), (0.6, 0.309317, 55417.49), (0.7, 0.341165, 72968.57)],
)
def test_the_compensation_of_the_health_center_as_published(epsilon0, epsilon, least):
    paper = runpy.run_path(str(FOLDER / "at_risk.py"))
    found = paper["best_epsilon"](epsilon0, paper["paper_confidence"])
    assert round(found, 6) == epsilon
    assert round(paper["cost_at_risk"](found, epsilon0, paper["paper_confidence"]), 2) == least
    # Equation 10.
    left = 1 / found - math.log(1 - (1 - math.exp(found)) / found**2)
    assert left == pytest.approx(1 / epsilon0, abs=1e-6)


@pytest.mark.parametrize(("size", "full"), [("full", True), ("", False)])
def test_a_variable_of_the_environment_chooses_the_size(size, full, monkeypatch):
    monkeypatch.setenv("SKDP_PAPERS", size)
    assert runpy.run_path(str(FOLDER / "reproduced.py"))["FULL"] is full


def test_each_page_asserts_its_claims_and_stands_in_the_list_of_all():
    listed = (ROOT / "docs" / "theory" / "papers.md").read_text()
    pages = sorted(FOLDER.glob("plot_*.py"))
    assert pages
    for page in pages:
        assert "assert" in page.read_text(), page.name
        assert f"examples/papers/{page.stem}.py" in listed, page.name
