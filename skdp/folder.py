"""The folder of a release: a pickle of it, its facts for programs, and a card for people."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import platform
import secrets
import shutil
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import joblib

CARD, FACTS, OBJECT = "README.md", "release.json", "release.joblib"
NAMES = frozenset({CARD, FACTS, OBJECT})
Facts: TypeAlias = dict[str, Any]
LIBRARIES = ("skdp", "scikit-learn", "numpy", "scipy", "joblib")


def check_free(folder: Path) -> None:
    """Make a folder, and refuse one that holds something else than an earlier release."""
    folder.mkdir(parents=True, exist_ok=True)
    held = {path.name for path in folder.iterdir()}
    if held and not (held <= NAMES and _is_whole(folder)):
        raise ValueError(
            f"The 'folder' parameter of save must be empty, or hold an earlier release. {folder} "
            "holds something else: take another folder. What was released is unharmed."
        )


def write_folder(folder: Path, thing: object, facts: Facts, card: str) -> None:
    """Write an object with facts and a card; if that fails, the folder stays as it is."""
    folder = folder.resolve()
    if not any(folder.iterdir()):
        _write(folder, thing, facts, card)
        return
    new, old = (folder.with_name(f".{folder.name}-{secrets.token_hex(8)}") for _ in range(2))
    new.mkdir()
    try:
        _write(new, thing, facts, card)
        folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(new, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(folder: Path, thing: object, facts: Facts, card: str) -> None:
    """Write to an empty folder; it is empty again if that fails."""
    try:
        try:
            joblib.dump(thing, folder / OBJECT)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"What was released is unharmed, and cannot be written: {error}. No other process "
                "finds a lambda, or a function within another. Replace it by one of a module, such "
                "as numpy.log1p, in the estimator_ by set_params, and in the copies that a "
                "ColumnTransformer keeps in named_transformers_; that costs nothing. Save again."
            ) from error
        facts = {
            "sha256": _digest(folder / OBJECT),
            "saved": datetime.now(UTC).isoformat(timespec="seconds"),
            **facts,
            "versions": versions(),
        }
        text = json.dumps(plain(facts), indent=2, allow_nan=False)
        (folder / FACTS).write_text(text, encoding="utf-8")
        (folder / CARD).write_text(card, encoding="utf-8")
    except BaseException:
        for name in NAMES:
            (folder / name).unlink(missing_ok=True)
        raise


def read_folder(folder: Path) -> object:
    """Read the object of a folder, if it is the one that was written."""
    if not ((folder / FACTS).is_file() and (folder / OBJECT).is_file()):
        raise ValueError(
            f"The 'folder' parameter of load must be one that Release.save wrote. {folder} lacks "
            f"{FACTS} or {OBJECT}."
        )
    if not _is_whole(folder):
        raise ValueError(
            f"{folder / OBJECT} is not the file that was saved: it has another checksum than "
            f"{FACTS} says. Copy the folder anew."
        )
    return joblib.load(folder / OBJECT)


def _is_whole(folder: Path) -> bool:
    """Whether the object of a folder is the one that its facts name."""
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        return bool(facts["sha256"] == _digest(folder / OBJECT))
    except (OSError, ValueError, LookupError, TypeError):  # they are something else
        return False


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
