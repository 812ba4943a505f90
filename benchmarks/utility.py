"""What released models are worth, by mechanism and epsilon, beside the exact and the public ones.

Rows of a sampled sensitivity have half of the records public, or their features alone; of the rest
.7 are private and .3 for tests. The columns are the published sampler (noise on every number,
"dkw") and codes. Rows of a known sensitivity (gamma 0) have a quarter of
the features public, at most 2,000, and half of the records private, at most 20,000. Scaler, radius,
second moment and prior come from the public ones. Of several numbers of principal components the
one is taken whose releases of datasets of the oracle label the public records most often as the
largest one does without noise.

diffprivlib runs in an environment that the script makes in `--cache`. Its bounds hold for every
pair. By its source it replaces a record for means and logistic regressions, as here, and adds or
removes one for counts and linear regressions. It is told public bounds, and has the best of its
settings, chosen on the test records.

Usage: python benchmarks/utility.py [--rows NAME ...] [--splits 2] [--releases 20] [--figures PATH]
"""

import argparse
import math
import subprocess
import tempfile
import venv
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomTreesEmbedding
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skdp import (
    BernsteinTransformer,
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
    PublicDataOracle,
    RandomDensityOracle,
    RandomTaskOracle,
    SensitivitySampler,
)
from skdp.accounting import PrivacyAccountant

PEERS = {
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.7.*"),
    "interpret": ("interpret-core==0.7.8", "scikit-learn", "pandas"),
}
MAX_N, MANY = 20_000, 10_000  # of so many records clips take away more than the noise they save
N_SIMULATED = 20  # datasets of the oracle, on which the number of components is chosen
GRID = np.linspace(0, 1, 401)[:, None]
COLUMNS = {
    "published": lambda epsilon: LaplaceMechanism(epsilon, code=None),
    "code, shift 0": lambda epsilon: LaplaceMechanism(epsilon, shift=0.0),
    "code, shift .2": lambda epsilon: LaplaceMechanism(epsilon, shift=0.2),
    "code, shift 1": lambda epsilon: LaplaceMechanism(epsilon, shift=1.0),
    "Gaussian code, .2": lambda epsilon: GaussianMechanism(epsilon, 1e-5, shift=0.2),
}
KNOWN_COLUMNS = {
    "Laplace": LaplaceMechanism,
    "L2 Laplace": L2LaplaceMechanism,
    "Gaussian, delta 1e-5": lambda epsilon: GaussianMechanism(epsilon, 1e-5),
}


@dataclass(frozen=True)
class Split:
    """What a row has in one split; `public` is what a library without an oracle may be told."""

    oracle: object
    private: tuple
    test: tuple
    public: tuple

    def standardized(self):
        """Return the same in units of the public records."""
        scaler = StandardScaler().fit(self.public[0])
        scaled = ((scaler.transform(X), y) for X, y in (self.private, self.test, self.public))
        return Split(self.oracle, *scaled)


def score(model, split):
    return model.score(*split.test)


@dataclass(frozen=True)
class Row:
    """One line of the table; `models(split)` returns the candidates, the largest one last."""

    title: str
    figure: str
    split: Callable
    models: Callable
    exact: object
    peer: str | None = None
    known: bool = False
    prior: bool = True
    release: object = "auto"
    epsilons: tuple = (0.1, 0.3, 1.0, 3.0, 10.0)
    n_splits: int = 6
    score: Callable = score


def load(loader):
    return lambda: loader(return_X_y=True)


def digits(kept=range(10)):
    """Return a loader of some of the digits; the range of a pixel is public."""

    def load():
        X, y = load_digits(return_X_y=True)
        return X[np.isin(y, kept)] / 16, y[np.isin(y, kept)]

    return load


def table(load, scaler=None, labels=None, plain=False):
    """Return what splits a table; `labels(y, rng)` makes the public labels, None has none."""

    def split(seed):
        X, y = load()
        n = MAX_N if len(X) > MAX_N else len(X) // 2
        ends = [(len(X) - n) // 2, (len(X) + n) // 2] if plain else [len(X) // 2, len(X) * 17 // 20]
        known, private, test = np.split(np.random.default_rng(seed).permutation(len(X)), ends)
        known = known[:2000] if plain else known
        X = X if scaler is None else clone(scaler).fit(X[known]).transform(X)
        if labels is not None:
            oracle = PublicDataOracle(X[known], labels(y[known], np.random.default_rng(seed)))
        elif y.dtype.kind == "f":
            low, high = response_range(y[known])
            oracle = RandomTaskOracle(X[known], y_mean=(low + high) / 2, y_scale=(high - low) / 4)
        else:
            classes = np.unique(y)
            oracle = RandomTaskOracle(X[known], classes=classes, least_share=0.6 / len(classes))
        return Split(oracle, *((X[each], y[each]) for each in (private, test, known)))

    return split


def mixture(seed, n_samples=500):
    """Draw from .4 N(.5, variance .02) + .6 N(.75, variance .005), within [0, 1]."""
    rng = np.random.default_rng(seed)
    first = rng.random(4 * n_samples) < 0.4
    drawn = rng.normal(np.where(first, 0.5, 0.75), np.sqrt(np.where(first, 0.02, 0.005)))
    X = drawn[(drawn >= 0) & (drawn <= 1)][:n_samples, None]
    exact = np.exp(KernelDensity(bandwidth=0.05).fit(X).score_samples(GRID))
    return Split(RandomDensityOracle([(0, 1)]), (X,), (GRID, exact), (X[:0],))


def density_error(model, split):
    """Return the L1 error against the release without noise."""
    noiseless = PrivateEstimator(
        DENSITY, mechanism=LaplaceMechanism(np.inf), sensitivity="known", release=LATTICE
    ).fit(*split.private)
    densities = [np.exp(each.score_samples(GRID)) for each in (model, noiseless)]
    return np.abs(densities[0] - densities[1]).mean()


def variance_error(model, split):
    exact = StandardScaler().fit(split.private[0])
    return np.abs(np.log(model[-1].var_ / exact.var_)).mean()


def response_range(y):
    return tuple(np.quantile(y, [0.025, 0.975]))


def front_of(split, quantile, *steps):
    """Return public steps, a clip to the norm that a share of the public records keep, and them."""
    front = make_pipeline(*map(clone, steps)).fit(split.public[0])
    Z = front.transform(split.public[0])
    clip = ClipNorm(float(np.quantile(np.linalg.norm(Z, axis=1), quantile)))
    return [*map(FrozenEstimator, front), clip], clip.fit_transform(Z)


def of_components(learner, numbers, *steps, quantile=0.5):
    """Return candidates with so many public principal components, None for all columns."""

    def models(split):
        for number in numbers:
            reduced = [] if number is None else [PCA(number, svd_solver="full")]
            front, Z = front_of(split, quantile, *steps, *reduced)
            yield make_pipeline(*front, learner(split, Z, front[-1].radius))

    return lambda split: list(models(split))


def moment_options(split, Z, radius):
    """Return what moments take from the public records, and their squared relative error."""
    rows = np.c_[Z, np.ones(len(Z))]
    mismatch = Z.shape[1] * (1 / len(Z) + 1 / len(split.private[0]))
    return {"constant": radius / 2, "second_moment": rows.T @ rows / len(rows)}, mismatch


def moments(split, Z, radius):
    """A class depends on a direction, so a second moment is shrunk by its relative error."""
    options, mismatch = moment_options(split, Z, radius)
    few = len(split.private[0]) < MANY  # of many records labels of fewer public ones say less
    shrinkage = min(1.0, mismatch**0.5)
    return MomentClassifier(shrinkage=shrinkage, refit_on=Z if few else None, **options)


def response(split, Z, radius):
    """A squared error depends on the size of coefficients, so what shrinks them is less."""
    options, mismatch = moment_options(split, Z, radius)
    y_range = response_range(split.public[1])
    return MomentRegressor(y_range=y_range, shrinkage=min(1.0, mismatch), **options)


def bayes(split, Z, radius):
    """Of few records variances have much noise, and one that is too small does most harm."""
    return GaussianNB(var_smoothing=0.1 if len(split.private[0]) < MANY else 1e-9)


def scaler(split):
    ends = np.quantile(split.public[0], [0.0005, 0.9995], axis=0)
    return [make_pipeline(ClipBox(*ends), StandardScaler())]


def sampled(title, figure, split, model, peer="logistic", **options):
    """Make a row of one model whose sensitivity is sampled."""
    return Row(title, figure, split, lambda _: [model], model, peer, **options)


def known(title, load, models, exact, peer, **options):
    """Make a row of candidates whose sensitivity is known."""
    options = {"n_splits": 3, "epsilons": (0.1, 0.3, 1.0, 3.0)} | options
    split = table(load, plain=True)
    return Row(title, "plain privacy", split, models, exact, peer, known=True, **options)


def logistic(C):
    return LogisticRegression(C=C, max_iter=1000)


def partly_wrong(y, rng):
    return np.where((y == 0) & (rng.random(len(y)) < 0.4), 1, y)  # 0 is malignant


def classification():
    return make_classification(MAX_N + 7000, 20, n_informative=5, random_state=0)


def many_numbers():
    """Make 8 classes in 260 columns: 2,088 coefficients and intercepts."""
    return make_classification(
        10_000,
        260,
        n_informative=20,
        n_classes=8,
        n_clusters_per_class=1,
        class_sep=2,
        random_state=0,
    )


def regression():
    return make_regression(MAX_N + 7000, 20, noise=50, random_state=0)


cancer, diabetes, wine = load(load_breast_cancer), load(load_diabetes), load(load_wine)
minmax, standard, centered = MinMaxScaler(), StandardScaler(), StandardScaler(with_std=False)
svc, ridge, ols = LinearSVC(C=0.01), Ridge(0.1), LinearRegression()
network = MLPClassifier((4,), alpha=1.0, solver="lbfgs", max_iter=300, random_state=0)
raw, forest = make_pipeline(standard, svc), RandomForestClassifier(random_state=0)
leaves = RandomTreesEmbedding(30, max_depth=4, sparse_output=False, random_state=0)
kernel = Nystroem(n_components=100, random_state=0)
DENSITY = KernelDensity(bandwidth=0.05)
LATTICE = BernsteinTransformer(degree=20, order=3, feature_range=(0, 1))
features, labels = "breast cancer, public features", "breast cancer, public labels"
ON_BOX = {"release": LATTICE, "epsilons": (0.03, 0.1, 0.3, 1, 3), "score": density_error}
true, inverted = (lambda y, rng: y), (lambda y, rng: 1 - y)
# fmt: off
ROWS = {
    "C1": sampled("logistic, min-max, C=1", features, table(cancer, minmax), logistic(1)),
    "C10": sampled("logistic, min-max, C=10", features, table(cancer, minmax), logistic(10)),
    "C.01": sampled("logistic, standardized", features, table(cancer, standard), logistic(0.01)),
    "svc": sampled("LinearSVC, standardized", features, table(cancer, standard), svc),
    "raw": sampled("scaler and LinearSVC, raw", features, table(cancer), raw, "pipeline"),
    "digits38": sampled("3 against 8, C=.1", "digits", table(digits([3, 8])), logistic(0.1)),
    "digits10": sampled("ten digits, C=.1", "digits", table(digits()), logistic(0.1), n_splits=2),
    "ridge": sampled("ridge (R²)", "diabetes", table(diabetes, standard, true), ridge, "linear"),
    "labeled": sampled("logistic, min-max, C=1", labels, table(cancer, minmax, true), logistic(1)),
    "wrong": sampled(
        "40 % of malignant called benign", labels, table(cancer, minmax, partly_wrong), logistic(1)
    ),
    "inverted": sampled("all inverted", labels, table(cancer, minmax, inverted), logistic(1)),
    "network": sampled("4 hidden units", labels, table(cancer, standard, true), network, None),
    "wide": sampled("2,088 numbers", "many numbers", table(many_numbers, None, true),
                    RidgeClassifier(), None, n_splits=2),
    "density": sampled("density (L1 error)", "density", mixture, DENSITY, "histogram", **ON_BOX),
    "cancer": known("logistic, breast cancer", cancer,
                    of_components(moments, (4, 8, 16, 30), standard), logistic(1), "clipped"),
    "wine": known("logistic, wine", wine,
                  of_components(moments, (4, 8, 13), standard), logistic(1), "clipped",
                  n_splits=24),
    "digits": known("logistic, ten digits", digits(),
                    of_components(moments, (8, 16, 32), centered), logistic(1), "clipped"),
    "synthetic": known("logistic, synthetic", classification,
                       of_components(moments, (16, 32, None), standard, kernel), logistic(1),
                       "clipped"),
    "nb-cancer": known("naive Bayes, breast cancer", cancer,
                       of_components(bayes, (4, 8, 16), standard), GaussianNB(), "bayes"),
    "nb-digits": known("naive Bayes, ten digits", digits(),
                       of_components(bayes, (8, 16), centered), GaussianNB(), "bayes"),
    "nb-synthetic": known("naive Bayes, synthetic", classification,
                          of_components(bayes, (None,), standard), GaussianNB(), "bayes"),
    "forest": known("leaves, breast cancer", cancer,
                    of_components(moments, (4, 8, 16, 32), leaves), forest, "forest"),
    "diabetes": known("linear, diabetes (R²)", diabetes,
                      of_components(response, (None,), standard), ols, "linear", n_splits=24),
    "regression": known("linear, synthetic (R²)", regression,
                        of_components(response, (None,), standard, quantile=0.95), ols, "linear"),
    "scaler": known("scaler, synthetic (error of log variance)", classification, scaler, standard,
                    "scaler", prior=False, score=variance_error),
}
# fmt: on
SMALL = {"svc": (1.0,), "density": (1.0,), "wine": (1.0,)}  # rows and epsilons of the small mode


def records_of(row, dataset):
    """Return what the model takes: a scaler takes no labels."""
    return dataset[:1] if row.score is variance_error else dataset


def sensitivity_of(row, split, title, small):
    """Return the sensitivity, and the further parameters of a private estimator."""
    if row.known:
        classes = {"classes": split.oracle.classes_} if is_classifier(row.exact) else {}
        return "known", classes | ({"prior": split.oracle} if row.prior else {})
    options = {"gamma": 0.2 if small else 0.05, "random_state": 0}
    if title == "published":
        options |= {"strata": None, "clip": None}
        options |= {} if small else {"calibration": "dkw"}
    return SensitivitySampler(split.oracle, **options), {}


def best_plan(row, split, candidates, title, mechanism, small):
    """Plan each candidate, and return the plan whose simulated releases label as without noise."""
    private, plans = records_of(row, split.private), []
    sensitivity, options = sensitivity_of(row, split, title, small)
    # a worker process has no ledger of its own
    options["accountant"] = PrivacyAccountant(":memory:", epsilon=math.inf, delta=1.0)
    for model in candidates:
        with suppress(ValueError) if title == "L2 Laplace" else nullcontext():  # for at most 16
            private_model = PrivateEstimator(
                model, mechanism=mechanism, sensitivity=sensitivity, release=row.release, **options
            )
            plans.append(private_model.plan(len(private[0]), like=private))
    if len(plans) < 2:
        return plans[0] if plans else None
    agreement, X = np.zeros(len(plans)), split.public[0]
    for number in range(2 if small else N_SIMULATED):
        drawn = split.oracle(len(private[0]), np.random.default_rng([7, number]))
        labeled = clone(candidates[-1]).fit(*drawn).predict(X)
        released = [plan.execute(*drawn, random_state=number).value for plan in plans]
        agreement += [np.mean(model.predict(X) == labeled) for model in released]
    return plans[int(np.argmax(agreement))]


def run(name, seed, options):
    """Return the scores of a row in one split: by column an array, of two columns one number."""
    row, scores = ROWS[name], {}
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # fits to random labels do not all converge, and plans warn of little that is learned
        warnings.simplefilter("ignore")
        split = row.split(seed)
        private, models = records_of(row, split.private), row.models(split)
        models = models[:2] if options.small else models
        scores["exact"] = [0.0]
        if row.score is score:
            data = split.standardized() if row.known else split
            scores["exact"] = [clone(row.exact).fit(*data.private).score(*data.test)]
        if not row.known:
            draws = [split.oracle(len(private[0]), np.random.default_rng([8, i])) for i in range(9)]
            draws = [draw if isinstance(draw, tuple) else (draw,) for draw in draws]
            fits = [clone(row.exact).fit(*draw) for draw in draws]
            scores["public"] = [np.mean([row.score(fit, split) for fit in fits])]
        for title, mechanism in (KNOWN_COLUMNS if row.known else COLUMNS).items():
            scores[title] = []
            for epsilon in options.epsilons.get(name, row.epsilons):
                plan = best_plan(row, split, models, title, mechanism(epsilon), options.small)
                values = (
                    plan.execute(*private, random_state=1000 * seed + number).value
                    for number in range(options.releases if plan else 0)
                )
                scores[title].append([row.score(value, split) for value in values] or [np.nan])
        data = split.standardized() if row.known else split
        path = options.cache / f"{name}-{seed}.npy"
        scores["diffprivlib"] = peer_scores(options.python, row.peer, data, row.epsilons, path)
    return scores


def peer_python(folder, peer="diffprivlib"):
    """Return the interpreter of an environment with the peer, None if it cannot be made."""
    python = folder.absolute() / peer / "bin" / "python"
    if not python.exists():
        venv.create(folder / peer, with_pip=True)
    command = [python, "-m", "pip", "install", "--quiet", *PEERS[peer]]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        print(peer, "is left out, as it cannot be installed:", found.stderr.strip()[-300:])
        return None
    return python


def peer_scores(python, kind, split, epsilons, path, n_releases=10):
    """Return the scores of a model of the peers, which are kept in a file."""
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
    return {
        title: of([[np.mean(each) for each in split[title]] for split in splits], axis=0)
        for title in splits[0]
    }


def standard_error(means, axis):
    """Return the standard error of the mean over splits, taken for independent."""
    return np.std(means, axis=axis, ddof=1) / len(means) ** 0.5 if len(means) > 1 else np.nan


def short(number):
    """Return three decimals; beyond 10 the number says nothing but that all is lost."""
    if not np.isfinite(number):
        return "-"
    if abs(number) >= 10:
        return "<-10" if number < 0 else ">10"
    return f"{number:.3f}".replace("0.", ".", 1) if abs(number) < 1 else f"{number:.2f}"


def print_table(results, options, of):
    """Print a line for each row, a cell for each column: a number per epsilon."""
    titles = list(next(iter(results.values()))[0])
    print("| model | epsilon | " + " | ".join(titles) + " |")
    print("|---|---|" + "---|" * len(titles))
    for name, splits in results.items():
        cells = summary(splits, of)
        shown = ["/".join(map(short, np.atleast_1d(cells[title]))) for title in titles]
        epsilons = options.epsilons.get(name, ROWS[name].epsilons)
        epsilons = "/".join(f"{epsilon:g}".lstrip("0") for epsilon in epsilons)
        print(f"| {ROWS[name].title} | {epsilons} | " + " | ".join(shown) + " |")


def draw(results, figure, path):
    """Draw the scores of the rows of a figure against epsilon, a panel for each row."""
    n_rows = -(-len(results) // 4)
    n_columns = -(-len(results) // n_rows)
    size = (3.4 * n_columns, 3 * n_rows + 0.6)
    fig, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat[len(results) :]:
        ax.set_axis_off()
    marks = "xsvo^DP*"  # each line has a mark of its own besides its color
    for ax, (name, splits) in zip(axes.flat, results.items(), strict=False):
        means, row = summary(splits, np.mean), ROWS[name]
        exact = float(means.pop("exact")[0])
        if row.score is score:
            ax.axhline(exact, color="black", linewidth=1, label="exact, not private")
            ax.set_ylim(-0.5 if "R²" in row.title else None, 1)
        else:
            ax.set_yscale("log")  # of errors, whose exact one is 0
        for public in means.pop("public", []):
            ax.axhline(public, color="0.6", linewidth=1, label="public fits")
        for (title, scores), mark in zip(means.items(), marks, strict=False):
            ax.plot(row.epsilons[: len(scores)], scores, label=title, marker=mark, markersize=5)
        ax.set(xscale="log", xlabel="epsilon (smaller is more private)", title=row.title)
        ax.set_xticks(row.epsilons, [f"{epsilon:g}" for epsilon in row.epsilons])
        ax.minorticks_off()
    fig.suptitle(figure, x=0.01, ha="left")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    fig.savefig(path, dpi=100)
    plt.close(fig)


def grouped(results, key):
    """Walk groups of rows: what they share, and their results."""
    groups = {}
    for name, splits in results.items():
        shared = key(ROWS[name])
        groups.setdefault(shared, {})[name] = splits
    return groups.items()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--splits", type=int, default=24, help="of a row at most: some have fewer")
    parser.add_argument("--releases", type=int, default=20, help="per split and epsilon")
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--cache", type=Path, default=Path(".cache/utility"))
    parser.add_argument("--figures", type=Path, help="a folder for one figure per dataset")
    parser.add_argument("--small", action="store_true", help="three rows, without diffprivlib")
    options = parser.parse_args()
    options.epsilons = SMALL if options.small else {}
    if options.small:
        options.rows, options.splits, options.releases, options.n_jobs = list(SMALL), 1, 1, 1
    options.cache.mkdir(parents=True, exist_ok=True)
    options.python = None if options.small else peer_python(options.cache)
    n_splits = {name: min(options.splits, ROWS[name].n_splits) for name in options.rows}
    tasks = [(name, seed) for name in options.rows for seed in range(n_splits[name])]
    found = joblib.Parallel(n_jobs=options.n_jobs)(
        joblib.delayed(run)(*task, options) for task in tasks
    )
    results = {name: [] for name in options.rows}
    for (name, _), scores in zip(tasks, found, strict=True):
        results[name].append(scores)
    for _, of_columns in grouped(results, lambda row: row.known):
        for title, of in (("Means", np.mean), ("Standard errors over splits", standard_error)):
            print(f"\n{title}, {options.releases} releases a split")
            print_table(of_columns, options, of)
    for figure, of_figure in grouped(results, lambda row: row.figure) if options.figures else ():
        options.figures.mkdir(parents=True, exist_ok=True)
        draw(of_figure, figure, options.figures / f"utility_{figure.replace(' ', '_')}.png")


if __name__ == "__main__":
    main()
