"""What is handed out: the wheel holds the package, the sdist the repository, and nothing else."""

import re
import subprocess
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import hatchling.build
import pytest
from hatchling.builders.sdist import SdistBuilder

import skdp

ROOT = Path(__file__).parents[1]
STEM = f"skdp-{skdp.__version__}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The texts of the files in the wheel, by name."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = hatchling.build.build_wheel(str(folder))
    assert name == f"{STEM}-py3-none-any.whl"
    with zipfile.ZipFile(folder / name) as file:
        return {each: file.read(each).decode() for each in file.namelist()}


def test_the_wheel_holds_the_package_and_what_is_said_of_it(wheel):
    package = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "skdp").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {f"{STEM}.dist-info/{each}" for each in ("METADATA", "WHEEL", "RECORD")}
    assert set(wheel) == package | about | {f"{STEM}.dist-info/licenses/LICENSE"}
    assert "skdp/py.typed" in package
    assert {Path(each).suffix for each in package} == {".py", ".typed"}


def test_an_index_shows_no_link_that_leads_nowhere(wheel):
    text = wheel[f"{STEM}.dist-info/METADATA"].partition("\n\n")[2]
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) >= 2
    assert [link for link in links if not link.startswith("https:")] == []
    assert "](docs/" in (ROOT / "README.md").read_text()  # as the sources have them


def test_the_sdist_holds_what_is_under_version_control():
    if not (ROOT / ".git").exists():
        pytest.skip("an unpacked sdist has no list of files to compare with")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    known = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    held = {each.relative_path for each in SdistBuilder(str(ROOT)).recurse_included_files()}
    assert held == {each for each in known.stdout.split("\n") if (ROOT / each).is_file()}


def test_every_dependency_of_a_user_has_its_license_in_the_docs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for_work = {"test", "lint", "docs", "notebooks", "dist", "dev"}
    wanted = [
        *project["dependencies"],
        *chain(*(extras[each] for each in extras.keys() - for_work)),
    ]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"^\| ([a-z][\w-]+) \| (\d[\d.]*) \| .+ \| .+ \|$", page, re.M)
    assert sorted(">=".join(row) for row in rows) == sorted(wanted)
