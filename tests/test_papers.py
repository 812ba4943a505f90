"""The pages that reproduce the papers assert their own numbers; here is what all of them share."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "papers"


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
