"""The folder of a release: a pickle of it, its facts for programs, and a card for people."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib

CARD, FACTS, OBJECT = "README.md", "release.json", "release.joblib"
LIBRARIES = ("skdp", "scikit-learn", "numpy", "scipy", "joblib")


def check_free(folder: Path) -> None:
    """Make a folder, and refuse one that holds something else than an earlier release."""
    folder.mkdir(parents=True, exist_ok=True)
    held = {path.name for path in folder.iterdir()}
    if held and not {FACTS, OBJECT} <= held <= {CARD, FACTS, OBJECT}:
        raise ValueError(
            f"The 'folder' parameter of save must be empty, or hold an earlier release. {folder} "
            "holds something else: take another folder. What was released is unharmed."
        )


def write_folder(folder: Path, thing: object, facts: dict[str, Any], card: str) -> None:
    """Write an object with facts and a card; if that fails, the folder stays as it is."""
    with TemporaryDirectory(dir=folder, prefix=".") as room:
        new = Path(room)
        joblib.dump(thing, new / OBJECT)
        facts = {
            "sha256": _digest(new / OBJECT),
            "saved": datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
            "versions": versions(),
        }
        text = json.dumps(plain(facts), indent=2, allow_nan=False)
        (new / FACTS).write_text(text, encoding="utf-8")
        (new / CARD).write_text(card, encoding="utf-8")
        for name in (OBJECT, FACTS, CARD):
            (new / name).replace(folder / name)


def read_folder(folder: Path) -> Any:
    """Read the object of a folder, if it is the one that was written."""
    if not ((folder / FACTS).is_file() and (folder / OBJECT).is_file()):
        raise ValueError(
            f"The 'folder' parameter of load must be one that Release.save wrote. {folder} lacks "
            f"{FACTS} or {OBJECT}."
        )
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    if facts["sha256"] != _digest(folder / OBJECT):
        raise ValueError(
            f"{folder / OBJECT} is not the file that was saved: it has another checksum than "
            f"{FACTS} says. Copy the folder anew."
        )
    return joblib.load(folder / OBJECT)


def versions() -> dict[str, str]:
    """With what a folder is written."""
    return {"Python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def plain(nested: Any) -> Any:
    """Write infinity as a word: JSON has no number for it."""
    if isinstance(nested, dict):
        return {name: plain(value) for name, value in nested.items()}
    if isinstance(nested, list | tuple):
        return [plain(value) for value in nested]
    return "inf" if nested == math.inf else nested


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
