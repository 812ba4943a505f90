"""What the files for contributors say of the project is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import skdp

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "development.md").read_text()


def names_in_tree(page):
    """The modules and folders of the package that a page describes, in its order."""
    tree = page.split("```text\nskdp/\n")[1].split("```")[0]
    return re.findall(r"^  (\w+(?:\.py|/)) ", tree, re.M)


def names_of_package():
    folder = ROOT / "skdp"
    modules = {path.name for path in folder.glob("*.py")}
    return modules | {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}


def test_the_tree_names_every_module_and_folder_once():
    names = names_in_tree(PAGE)
    assert len(names) == len(set(names))
    assert set(names) == names_of_package()


def test_the_table_of_where_to_look_names_files_of_the_package():
    table = PAGE.split("| to change | open |")[1].split("\n\n")[0]
    for row in table.strip().splitlines()[1:]:
        first, *beside = re.findall(r"`([\w/]+(?:\.py|/))`", row)
        assert (ROOT / first).exists(), row
        for name in beside:
            place = ROOT / name if "/" in name else (ROOT / first).parent / name
            assert place.exists(), row


def test_a_word_stands_once_in_the_glossary_and_in_its_place():
    text = (ROOT / "docs" / "glossary.md").read_text()
    entries = text.split("```{glossary}\n")[1].split("```")[0]
    words = re.findall(r"^(\S.*)$", entries, re.M)
    assert {"oracle", "target", "pair", "gamma", "public fit", "plan", "room"} <= set(words)
    assert words == sorted(set(words))


def test_the_hooks_are_the_commands_of_make_lint():
    recipe = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    commands = re.findall(r"^\t\$\(BIN\)/(.*)$", recipe, re.M)
    config = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"entry: (.*)$", config, re.M) == commands
    assert re.findall(r"repo: (.*)$", config, re.M) == ["local"]


def test_the_workflow_runs_what_must_hold():
    text = (ROOT / ".github" / "workflows" / "check.yml").read_text()
    assert re.findall(r"- run: (.*)$", text, re.M) == [".ci/run", "make test"]
    project = (ROOT / "pyproject.toml").read_text()
    oldest = re.search(r'requires-python = ">=([\d.]+)"', project)
    assert f'python-version: "{oldest.group(1)}"' in text
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert versions[0] == oldest.group(1)
    assert f"python: {versions[1:]}".replace("'", '"') in text


def test_the_examples_use_public_names_and_those_that_the_page_promises():
    """From `skdp` itself what it exports; other modules are without an underscore."""
    blocks = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S))
    exported = ", ".join(re.findall(r"^from skdp import (.*)$", blocks, re.M)).split(", ")
    assert exported
    assert set(exported) <= set(skdp.__all__)
    assert not re.search(r"skdp[\w.]*\._", blocks)


@pytest.mark.slow
def test_what_depends_on_chance_is_run_again_where_that_is_asked_for():
    """A doctest that draws no noise is run once."""
    paths = ["tests/mechanisms/test_third_party.py", "skdp/core/guarantee.py"]
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "--runs", "3"]
    run = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True)
    assert "6 passed" in run.stdout  # three doctests, and one test three times


def test_each_word_of_the_glossary_names_one_class_at_most():
    found = {}
    for path in sorted((ROOT / "skdp").rglob("*.py")):  # classes, and aliases of types
        defined = r"^(?:class |(?=[A-Z]\w*[a-z]\w*(?:: TypeAlias)? = ))(\w+)"
        for name in re.findall(defined, path.read_text(), re.M):
            found.setdefault(name, []).append(path.stem)
    assert {"Dataset", "Target", "Rows", "PilotPairs"} <= found.keys()
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}
    glossary = (ROOT / "docs" / "glossary.md").read_text().split("```{glossary}")[1]
    words = re.findall(r"^(\w[\w ]*)$", glossary, re.M)
    assert {"code", "pilot pair"} <= set(words)
    for word in words:
        name = word.title().replace(" ", "")
        assert len({name, f"{name}s"} & found.keys()) <= 1, word
