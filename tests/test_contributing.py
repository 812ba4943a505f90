"""What the files for contributors say of the project is so."""

import importlib.util
import json
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


def test_a_release_is_built_from_what_the_project_says():
    """Each workflow runs what is there; versions and dependencies are those of the package."""
    project = (ROOT / "pyproject.toml").read_text()
    release, docs = (
        (ROOT / ".github/workflows" / f"{n}.yml").read_text() for n in ("release", "docs")
    )
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    assert f"python: {versions}".replace("'", '"') in release
    assert "id-token: write" in release.split("  publish:")[1]
    for script in re.findall(r"\.ci/[\w.-]+", release + docs):
        assert (ROOT / script).exists(), script
    recipe = (ROOT / ".conda/recipe.yaml").read_text()
    needed = re.search(r"\ndependencies = \[(.*?)\]", project, re.S)[1]
    needed = [name.replace(">=", " >=") for name in re.findall(r'"(.*?)"', needed)]
    run = re.findall(r"^    - (.*)$", recipe.split("  run:\n")[1].split("\n\n")[0], re.M)
    oldest = re.search(r'requires-python = "(.*)"', project)[1]
    assert run == [f"python {oldest}", *needed]
    assert f'version: "{skdp.__version__}"' in recipe
    assert f"\nversion: {skdp.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_site_leads_to_its_newest_version(tmp_path):
    spec = importlib.util.spec_from_file_location("gather_site", ROOT / ".ci" / "gather_site.py")
    spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
    built, site = tmp_path / "html", tmp_path / "site"
    for version in ("dev", "0.9.0", "0.10.0", "0.9.0"):
        built.mkdir(exist_ok=True)
        (built / "index.html").write_text(version)
        module.gather(site, version, "/skdp/", built)
    listed = json.loads((site / "switcher.json").read_text())
    assert [each["version"] for each in listed] == ["0.10.0", "0.9.0", "dev"]
    assert listed[0]["url"] == "/skdp/0.10.0/"
    assert "url=0.10.0/" in (site / "index.html").read_text()
    assert (site / "0.9.0" / "index.html").read_text() == "0.9.0"


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
