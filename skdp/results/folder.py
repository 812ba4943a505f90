"""The folder of a release: files for skdp, for other programs, and a card for people."""

from __future__ import annotations

import hashlib
import io
import json
import math
import pickle
import re
import zipfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import joblib
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from skdp.core.checks import shown
from skdp.functions.released import ReleasedFunction
from skdp.results.names import versions
from skdp.results.report import PrivacyReport, together

CARD, FACTS, OBJECT = "README.md", "release.json", "release.joblib"
MODEL, SAFE_MODEL = "estimator.joblib", "estimator.skops"
LIBRARIES = ("skdp", "scikit-learn", "numpy", "scipy", "joblib")
ALONE = {
    MODEL: f"`{MODEL}` is a pickle of the model alone: `joblib.load` needs no skdp.",
    SAFE_MODEL: f"`{SAFE_MODEL}` is the model alone: `skops.io.load` needs no skdp, runs no code.",
}
NAMES = frozenset({CARD, FACTS, OBJECT, MODEL, SAFE_MODEL})


def check_free(folder: Path) -> None:
    """Make a folder; refuse one that holds anything but an earlier release."""
    folder.mkdir(parents=True, exist_ok=True)
    held = {path.name for path in folder.iterdir()}
    if held and not (held <= NAMES and _is_whole(folder)):
        raise ValueError(
            f"The 'folder' parameter of save must be empty, or hold an earlier release. {folder} "
            "holds something else: take another folder. What was released is unharmed."
        )


def write_folder(
    folder: Path,
    release: object,
    value: object,
    report: PrivacyReport,
    plan: str,
    **shown_in_card: Any,
) -> None:
    """Write a release; if a file cannot be made or written, the folder stays as it is."""
    try:
        files = {OBJECT: _pickled(release)} | _model_file(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"What was released is unharmed, and cannot be written: {error}. No other process "
            "finds a lambda, or a function within another: replace it in the estimator_ by one of "
            "a module, such as numpy.log1p, by set_params and in the copies that a "
            "ColumnTransformer keeps in named_transformers_, and save again at no cost."
        ) from error
    facts = {
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        "promise": str(report.guarantee),
        "guarantee": report.guarantee.to_dict(),
        "budget": asdict(report.budget),
        "plan": plan,
        "versions": versions(LIBRARIES),
    }
    card = model_card(value, report, plan, list(files), **shown_in_card)
    files[FACTS] = json.dumps(plain(facts), indent=2, allow_nan=False).encode()
    files[CARD] = card.encode()
    written = {name: folder / f".{name}.new" for name in files}
    try:
        for name, content in files.items():
            written[name].write_bytes(content)
        for name in NAMES - files.keys():
            (folder / name).unlink(missing_ok=True)
        for name, path in written.items():
            path.replace(folder / name)
    except BaseException:
        for path in written.values():
            path.unlink(missing_ok=True)
        raise


def _pickled(thing: object) -> bytes:
    joblib.dump(thing, file := io.BytesIO())
    return file.getvalue()


def _model_file(value: object) -> dict[str, bytes]:
    """Return the file of a model without parts of skdp, for programs without skdp."""
    pickled = _pickled(value)
    if not isinstance(value, BaseEstimator) or b"skdp" in pickled:
        return {}
    try:
        import skops.io

        dumped = _without_addresses(skops.io.dumps(value))
        skops.io.loads(dumped)
    except Exception:  # skops is not installed, cannot write the model, or does not trust its parts
        return {MODEL: pickled}
    return {SAFE_MODEL: dumped}


def _without_addresses(dumped: bytes) -> bytes:
    """Remove the addresses of objects and the time, so that equal models have equal files."""
    address, numbers = re.compile(r'(?<="__id__": )\d+|\d+(?=\.npy)'), dict[str, str]()
    number = partial(address.sub, lambda found: numbers.setdefault(found[0], str(len(numbers))))
    with zipfile.ZipFile(io.BytesIO(dumped)) as old:
        parts = {name: old.read(name) for name in ("schema.json", *sorted(old.namelist()))}
    parts["schema.json"] = number(parts["schema.json"].decode()).encode()
    with zipfile.ZipFile(file := io.BytesIO(), "w") as new:
        for name, content in sorted((number(name), content) for name, content in parts.items()):
            new.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def read_folder(folder: Path) -> object:
    """Read the object of a folder whose files have the checksums that were written."""
    if not ((folder / FACTS).is_file() and (folder / OBJECT).is_file()):
        raise ValueError(
            f"The 'folder' parameter of load must be one that Release.save wrote. {folder} lacks "
            f"{FACTS} or {OBJECT}."
        )
    if not _is_whole(folder):
        raise ValueError(
            f"A file in {folder} is not the file that was saved: it has another checksum than "
            f"{FACTS} says. Copy the folder anew."
        )
    return joblib.load(folder / OBJECT)


def _is_whole(folder: Path) -> bool:
    """Return whether the files of a folder have the checksums that were written."""
    try:
        digests = json.loads((folder / FACTS).read_text(encoding="utf-8"))["sha256"]
        written = {name: (folder / name).read_bytes() for name in {OBJECT, *digests} & NAMES}
        return bool(digests == {n: hashlib.sha256(each).hexdigest() for n, each in written.items()})
    except (OSError, ValueError, LookupError, TypeError):  # the folder holds something else
        return False


def plain(nested: object) -> object:
    """Write infinity as a word: JSON has no number for it."""
    match nested:
        case dict():
            return {name: plain(value) for name, value in nested.items()}
        case list() | tuple():
            return [plain(value) for value in nested]
    return "inf" if nested == math.inf else nested


def model_card(
    value: object,
    report: PrivacyReport,
    plan: str,
    files: list[str],
    *,
    table: str | None,
    warning: str,
    can_simulate: bool | None,
) -> str:
    """Write the card in Markdown."""
    what, kind, good = report.title, "value", "exact the value is"
    if isinstance(value, BaseEstimator):
        what, kind, good = type(value).__name__, "model", "well the model does"
    chosen = (line for line in plan.splitlines() if line.startswith("Chosen: "))
    has_numbers = table is not None or kind == "value"
    numbers = ["## What was released", _code(table or shown(value))] if has_numbers else []
    seen = "released.summary()  # its numbers beside their standard errors\n" if table else ""
    used = ", ".join(f"{name} {number}" for name, number in versions(LIBRARIES).items())
    parts = [
        f"# {what}, released privately",
        "## What is promised",
        _code(str(report.guarantee)),
        together(report.guarantee, report.budget),
        "What somebody with this release and all other "
        f"{report.guarantee.unit}s can learn at most about one {report.guarantee.unit}:",
        "\n".join(f"- {said}" for said in report.lines),
        f"It says nothing about how {good}.",
        *numbers,
        *chosen,
        f"**{warning}**" if warning else "",
        "## How to load it",
        '```python\nimport skdp\n\nreleased = skdp.load("this folder")\n'
        f"released.value  # the {kind}\n{seen}released.report()  # what an attacker gains\n```",
        *_advice(value, table is not None, can_simulate),
        f"`{OBJECT}` is a pickle, written by joblib: loading it executes what is in it, so "
        f"load only what you trust. Written with {used}.",
        *(text for name, text in ALONE.items() if name in files),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _advice(value: object, has_numbers: bool, can_simulate: bool | None) -> list[str]:
    """Describe the methods of a loaded release, and warn of `fit`; None is for no intervals."""
    kinds = {"predict_interval": is_regressor, "predict_stability": is_classifier}
    predicts = can_simulate is not None and has_numbers and hasattr(value, "predict")
    says = "is not available: the release was saved without `n_draws`."
    if can_simulate:
        says = "shows how uncertain the noise makes a prediction."
    lines = [f"`released.{n}(X)` {says}" for n, kind in kinds.items() if predicts and kind(value)]
    if hasattr(value, "fit") and not isinstance(value, ReleasedFunction):
        lines.append("`released.value.fit` would fit anew, without any noise: do not call it.")
    return lines


def _code(text: str) -> str:
    """Quote a text in Markdown, whatever backticks are in it."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return f"{fence}text\n{text}\n{fence}"
