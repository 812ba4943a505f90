"""The field: diffprivlib and OpenDP in an environment of its own, and tables beside it."""

import subprocess
import tempfile
import venv
from pathlib import Path

import numpy as np

PEER = "diffprivlib==0.6.6", "scikit-learn==1.7.*", "opendp==0.16.*"
PROMISE = (
    "diffprivlib's bounds hold for every pair (gamma 0). By its source a record is replaced for "
    "means and logistic regressions, as here, and added or removed for counts and linear ones. It "
    "is told public bounds, and has the best of its settings, chosen on the test records. OpenDP "
    "is told to replace a record, as here."
)


def peer_python(folder):
    """Return the interpreter of an environment with both, None if it cannot be made."""
    python = folder.absolute() / "diffprivlib" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "diffprivlib", with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", *PEER]
    found = subprocess.run(
        [python, "-c", "import diffprivlib, opendp"], capture_output=True, check=False
    )
    if found.returncode:
        found = subprocess.run(install, capture_output=True, text=True, check=False)
    if found.returncode:
        print("The field is left out, since it cannot be installed:", found.stderr.strip()[-300:])
        return None
    print(PROMISE)
    return python


def peer_scores(python, kind, split, epsilons, path, n_releases=10):
    """Return the scores of a model of the field, which are kept in a file."""
    if kind is None or python is None:
        return np.full((len(epsilons), 1), np.nan)
    if not path.exists():
        parts = {
            f"{part}_{axis}": array
            for part in ("public", "private", "test")
            for axis, array in zip("Xy", getattr(split, part), strict=False)
        }
        with tempfile.TemporaryDirectory() as folder:
            task = Path(folder) / "task.npz"
            np.savez(task, epsilons=epsilons, n_releases=n_releases, **parts)
            script = Path(__file__).with_name("peers.py")
            subprocess.run([python, script, kind, task, path.absolute()], check=True)
    return np.load(path)


def summary(splits, of):
    """Reduce the scores of the splits, column by column, to one number per epsilon."""
    titles = list(splits[0])
    return {title: of([np.mean(split[title], axis=-1) for split in splits]) for title in titles}


def mean(means):
    """Return the mean over splits."""
    return np.mean(means, axis=0)


def standard_error(means):
    """Return the standard error of the mean over splits, taken for independent."""
    return np.std(means, axis=0, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else means[0] * 0


def print_table(results, rows, of):
    """Print a line for each row, a cell for each column: a number per epsilon."""
    titles = list(next(iter(results.values()))[0])
    print("| model | epsilon | " + " | ".join(titles) + " |")
    print("|---|---|" + "---|" * len(titles))
    for name, splits in results.items():
        cells = summary(splits, of)
        shown = ["/".join(map(short, np.atleast_1d(cells[title]))) for title in titles]
        epsilons = "/".join(f"{epsilon:g}".lstrip("0") for epsilon in rows[name].epsilons)
        print(f"| {rows[name].title} | {epsilons} | " + " | ".join(shown) + " |")


def print_tables(results, rows, options):
    """Print the means, and their standard errors."""
    splits = " or ".join(map(str, sorted({len(splits) for splits in results.values()})))
    print(f"\nMeans over {splits} splits and {options.releases} releases of each")
    print_table(results, rows, mean)
    print("\nStandard errors over the splits")
    print_table(results, rows, standard_error)


def short(number):
    """Return three decimals; beyond 10 the number says nothing but that all is lost."""
    if not np.isfinite(number):
        return "-"
    if abs(number) >= 10:
        return "<-10" if number < 0 else ">10"
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 1 else f"{number:.2f}"
