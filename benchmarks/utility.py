"""How good released models are, by mechanism and epsilon, beside the exact and the public ones.

The columns are the published sampler (noise on every number, 1305 pairs by the "dkw" rule), a basis
without a prior, codes, and diffprivlib in an environment that this script makes. All pairs of a row
and split are evaluated once and kept in `--cache`; the library then learns, calibrates and releases
from the kept values, which is cheap. Whoever reads the same private data as often as this has no
privacy: it is for benchmarks only.

Usage: python benchmarks/utility.py [--rows NAME ...] [--splits 2] [--releases 20]
"""

import argparse
import warnings
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
from field import mean, peer_python, peer_scores, print_tables, summary
from rows import FIGURES, GRID, N_PAIRS, ROWS, Kept
from threadpoolctl import threadpool_limits

from skdp import GaussianMechanism, LaplaceMechanism
from skdp.mechanisms.noise import byte_source


@dataclass(frozen=True)
class Column:
    """One way to release: its mechanism at an epsilon, its line, the options of its sampler.

    In the table of errors a column is of data of the oracle or of the private records.
    """

    mechanism: object
    line: dict
    options: dict = field(default_factory=dict)
    oracles: bool = False


def basis(kind):
    return lambda epsilon: LaplaceMechanism(epsilon, basis=kind, decode=False)


def gaussian_basis(kind):
    return lambda epsilon: GaussianMechanism(epsilon, 1e-5, basis=kind, decode=False)


def code(shift):
    return lambda epsilon: LaplaceMechanism(epsilon, shift=shift)


def gaussian(epsilon):
    return GaussianMechanism(epsilon, 1e-5, shift=0.2)


# Colors that the color-blind tell apart; each line has a mark and a dash of its own besides.
COLUMNS = {
    "published": Column(
        basis("identity"),
        {"color": "#CC79A7", "marker": "x", "linestyle": "--"},
        {"n_pairs": N_PAIRS, "calibration": "dkw"},
    ),
    "basis": Column(basis("predictive"), {"color": "#E69F00", "marker": "s", "linestyle": "-."}),
    "code, shift 0": Column(code(0), {"color": "#56B4E9", "marker": "v", "linestyle": ":"}),
    "code, shift .2": Column(code(0.2), {"color": "#0072B2", "marker": "o", "linewidth": 2.5}),
    "code, shift 1": Column(code(1), {"color": "#56B4E9", "marker": "^", "linestyle": "--"}),
    "Gaussian code, .2": Column(gaussian, {"color": "#009E73", "marker": "D", "linestyle": "-."}),
}
KINDS = ("identity", "diagonal", "predictive")
TABLES = {
    "codes": COLUMNS,
    "bases": {f"Laplace {kind}": Column(basis(kind), {}) for kind in KINDS}
    | {f"Gaussian {kind}": Column(gaussian_basis(kind), {}) for kind in KINDS},
    "fewer": {
        f"{n_pairs} + {n_pairs}": Column(code(0.2), {}, {"n_pairs": n_pairs})
        for n_pairs in (199, 59, 19)
    },
    "errors": {
        f"{data}, shift {shift:g}": Column(code(shift), {}, oracles=data == "oracle's")
        for shift, data in product((0, 0.2, 1), ("oracle's", "private"))
    },
}
PEER_LINE = {"color": "#D55E00", "marker": "P", "linestyle": ":"}


def run(name, seed, options):
    """Return the scores of a row in one split: for each column an array, and two single ones."""
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # fits to random labels do not all converge, and plans warn of little that is learned
        warnings.simplefilter("ignore")
        kept = Kept(name, seed, options.cache)
        if (name, seed) == (options.rows[0], 0):
            kept.check()
        measure, scores = errors, {}
        if options.table != "errors":
            measure = releases
            scores["exact"] = [kept.score(kept.exact)]
            scores["public"] = [kept.score(kept.public_mean)]
        for title, column in TABLES[options.table].items():
            source = byte_source(seed)
            scores[title] = [
                measure(kept, column, epsilon, options.releases, source)
                for epsilon in ROWS[name].epsilons
            ]
    return scores


def releases(kept, column, epsilon, n_releases, source):
    """Return the scores of so many releases, which are missing where the library refuses one."""
    try:
        plan = kept.plan(column.mechanism(epsilon), **column.options)
    except ValueError:
        return [np.nan] * n_releases
    sensitivity = plan.sensitivity.value
    return [
        kept.score(plan.mechanism.release(kept.exact, sensitivity, source))
        for _ in range(n_releases)
    ]


def errors(kept, column, epsilon, n_releases, source):
    """Return for each release the root mean square of its errors by their standard errors."""
    plan = kept.plan(column.mechanism(epsilon), **column.options)
    found = []
    for number in range(1, n_releases + 1):  # of the last pairs, which nothing was learned from
        value = kept.pairs[-number, 0].reshape(kept.exact.shape) if column.oracles else kept.exact
        sensitivity = plan.sensitivity.value
        released, deviations = plan.mechanism.release_with_errors(value, sensitivity, source)
        known = deviations > 0
        ratios = (released - value)[known] / deviations[known]
        found.append(np.sqrt(np.mean(ratios**2)))
    return found


def draw(figure, results, path):
    """Draw the score against epsilon, a panel for each row, with a legend beside them."""
    names = [name for name in results if ROWS[name].figure == figure]
    n_rows = -(-len(names) // 3)
    n_columns = -(-len(names) // n_rows)
    fig, axes = plt.subplots(
        n_rows,
        n_columns,
        figsize=(3.4 * n_columns + 1, 3 * n_rows),
        squeeze=False,
        layout="constrained",
    )
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    for ax, name in zip(axes.flat, names, strict=False):
        means, row = summary(results[name], mean), ROWS[name]
        exact = means.pop("exact")
        if exact:  # the error of a density is 0, which no logarithmic axis shows
            ax.axhline(exact, color="black", linewidth=1, label="exact, not private")
        ax.axhline(means.pop("public"), color="0.6", linewidth=1, label="mean of public fits")
        for title, scores in means.items():
            line = COLUMNS[title].line if title in COLUMNS else PEER_LINE
            if np.isfinite(scores).any():
                low = -np.inf if row.limits[0] is None else row.limits[0]
                label = title if (scores >= low).any() else f"{title} (below)"
                ax.plot(row.epsilons, scores, label=label, markersize=5, **line)
        ax.set(xscale="log", xlabel="epsilon (smaller is more private)", ylabel=row.measure)
        ax.set_yscale("log" if name == "density" else "linear")
        ax.set_xticks(row.epsilons, [f"{epsilon:g}" for epsilon in row.epsilons])
        ax.minorticks_off()
        ax.set_title(row.title, fontsize=10)
        ax.set_ylim(row.limits)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.suptitle(FIGURES[figure], x=0.01, ha="left")
    fig.legend(handles, labels, loc="outside right upper", fontsize=8)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def draw_density(path, options, epsilon=0.1):
    """Draw what the published method and a code make of a density: three releases of each."""
    kept = Kept("density", 0, options.cache)
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    titles = {"published": "published: noise on all 21 values", "code, shift .2": "public code"}
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        column, source = COLUMNS[name], byte_source(0)
        plan = kept.plan(column.mechanism(epsilon), **column.options)
        ax.hist(*kept.data.private, bins=40, range=(0, 1), density=True, color="0.85", label="data")
        for number in range(3):
            noisy = plan.mechanism.release(kept.exact, plan.sensitivity.value, source)
            density = np.exp(kept.target.restore(noisy).score_samples(GRID))
            label = "private, three releases" if number == 0 else None
            ax.plot(GRID, density, color=column.line["color"], alpha=0.7, label=label)
        ax.plot(*kept.data.test, color="#D55E00", linestyle="--", label="exact, not private")
        ax.set(title=f"{title}, epsilon {epsilon:g}", xlabel="x", xlim=(0, 1))
        ax.legend(loc="upper left", fontsize=8)
    axes[0].set_ylabel("density")
    fig.savefig(path, dpi=110)
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--splits", type=int, default=6, help="of a row at most: some have fewer")
    parser.add_argument("--releases", type=int, default=20, help="per split and epsilon")
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--cache", type=Path, default=Path(".cache/utility"))
    parser.add_argument("--figures", type=Path, help="a folder for one figure per data set")
    parser.add_argument("--table", choices=TABLES, default="codes")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    whole = options.table == "codes"
    python = peer_python(options.cache) if whole else None
    splits = {name: range(min(options.splits, ROWS[name].n_splits)) for name in options.rows}
    tasks = [(name, seed) for name, seeds in splits.items() for seed in seeds]
    found = joblib.Parallel(n_jobs=options.n_jobs)(
        joblib.delayed(run)(*task, options) for task in tasks
    )
    results = {name: [] for name in options.rows}
    for task, scores in zip(tasks, found, strict=True):
        if whole:
            row, path = ROWS[task[0]], options.cache / "peer-{}-{}.npy".format(*task)
            scores["diffprivlib"] = peer_scores(
                python, row.peer, row.split(task[1]), row.epsilons, path
            )
        results[task[0]].append(scores)
    print_tables(results, ROWS, options)
    if options.figures and whole:
        options.figures.mkdir(parents=True, exist_ok=True)
        for figure in dict.fromkeys(ROWS[name].figure for name in options.rows):
            draw(figure, results, options.figures / f"utility_{figure}.png")
        if "density" in options.rows:
            draw_density(options.figures / "density_release.png", options)


if __name__ == "__main__":
    main()
