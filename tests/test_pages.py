"""The sessions shown in the README and in the documentation run as they are printed."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs").glob("[tu]*/*.md"))
FENCE = re.compile(r"^```(?:python|pycon)\n(.*?)^```$", re.M | re.S)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def failures(text, name):
    """Run the examples of a page as one session and return how many tried, how many failed."""
    session = "\n".join(block for block in FENCE.findall(text) if ">>> " in block)
    page = doctest.DocTestParser().get_doctest(session, {"__name__": "__main__"}, name, name, 0)
    return doctest.DocTestRunner(optionflags=FLAGS).run(page)


def case(path):
    """A page, by its place in the tree; a session with many fits takes seconds."""
    name = path.relative_to(ROOT).as_posix()
    slow_pages = (f"docs/user_guide/{page}.md" for page in ("codes", "plans", "selection"))
    is_slow = name in {"README.md", "docs/quickstart.md", *slow_pages}
    return pytest.param(path, id=name, marks=[pytest.mark.slow] * is_slow)


@pytest.mark.worth
@pytest.mark.parametrize("path", [case(page) for page in PAGES])
def test_sessions_of_a_page_run(path):
    assert failures(path.read_text(), path.name).failed == 0


def test_a_planted_wrong_result_is_found():
    page = "```python\n>>> x = 1\n```\nthen\n```pycon\n>>> x + 1\n3\n```\n"
    assert failures(page, "planted") == doctest.TestResults(failed=1, attempted=2)


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def broken_links(path):
    """Return the relative links of a page on which no file, or no heading in it, stands."""
    broken = []
    for place, heading in LINK.findall(path.read_text(encoding="utf-8")):
        there = path.parent / place if place else path
        if not there.exists():
            broken.append(place)
        elif heading:
            titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.M)
            slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
            broken += [f"{place}#{heading}"] * (heading not in slugs)
    return broken


def test_relative_links_lead_somewhere(tmp_path):
    pages = ["README", "CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY", "VISION", "CHANGELOG"]
    assert [link for page in pages for link in broken_links(ROOT / f"{page}.md")] == []

    planted = tmp_path / "page.md"
    planted.write_text("# A title\n[yes](#a-title) [no](#another) [no](absent.md)")
    assert broken_links(planted) == ["#another", "absent.md"]


SCRIPT = re.compile(r"`((?:benchmarks|examples|tests)/[\w/]+\.py)`(?! of\s+commit [0-9a-f]{7})")


@pytest.mark.loop("path", PAGES)
def test_scripts_that_a_page_names_exist_unless_it_names_their_commit(path):
    named = SCRIPT.findall(path.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []
