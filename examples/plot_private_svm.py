"""
A private support vector machine
================================

A hospital has a classifier that tells malignant from benign tumors, and wants to hand it on. What
does privacy cost it? Here the classifier is released at several levels of privacy, with noise
calibrated to how much it changes when one patient is replaced.

The data are scikit-learn's breast-cancer records. One half of them is taken to be public, the
other is private: 199 records to train on, 86 to test.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivitySampler,
)

X, y = load_breast_cancer(return_X_y=True)
X_public, X_private, y_public, y_private = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(
    X_private, y_private, test_size=0.3, stratify=y_private, random_state=0
)

# %%
# The model
# ---------
# The scaler has learned from the public half, so it is frozen and releases nothing. The strong
# regularization is on purpose: the less one record moves the weights, the less noise they need.

scaler = FrozenEstimator(StandardScaler().fit(X_public))
svm = make_pipeline(scaler, LinearSVC(C=0.003))
exact = clone(svm).fit(X_train, y_train).score(X_test, y_test)

# %%
# Two oracles
# -----------
# An oracle yields plausible records. The first knows the public features and nothing of the
# diagnoses: it labels each data set by a random linear rule. The second has the public half with
# its diagnoses. To see what the oracle alone gives away, we score the *public fit*, which is the
# model fitted to the oracle's records. With random rules it is no better than guessing, so all that
# the private model knows it has from the private records.

oracles = {
    "public features, random labels": RandomTaskOracle(X_public, classes=[0, 1]),
    "public features and labels": PublicDataOracle(X_public, y_public),
}


def accuracy_of_public_fit(oracle, n_draws=20):
    """Return the mean accuracy of the model fitted to records of the oracle alone."""
    rng = np.random.default_rng(0)
    models = [clone(svm).fit(*oracle(len(X_train), rng)) for _ in range(n_draws)]
    return np.mean([model.score(X_test, y_test) for model in models])


# %%
# Private fits
# ------------
# For each level of privacy a plan is made. It learns from 59 pilot pairs of data sets, each pair
# differing in one record, which few directions of the 31 numbers are worth their noise, and how the
# rest follows from them. Then it samples the sensitivity in these directions, from 59 other pairs.
# No private record is needed for that. Each level is shown by 20 releases. They are for
# illustration: a real data set is released once, and every further release spends more of its
# privacy.
#
# With public labels and an epsilon of .1 hardly anything is learned from the private data, of which
# the plan warns. The release is accurate all the same: it is nearly the public model. The warning
# is switched off here, since the share is printed.

warnings.filterwarnings("ignore", "This is nearly the oracle's model", UserWarning)
epsilons = [0.1, 0.3, 1, 3, 10]
n_releases = 20
results = {}
for name, oracle in oracles.items():
    sampler = SensitivitySampler(oracle, gamma=0.05, random_state=0)
    print(f"\nOracle: {name}")
    print(f"  accuracy: exact {exact:.3f}, public fit {accuracy_of_public_fit(oracle):.3f}")
    scores = []
    for epsilon in epsilons:
        mechanism = LaplaceMechanism(epsilon)
        model = PrivateEstimator(svm, mechanism=mechanism, sensitivity=sampler, classes=[0, 1])
        plan = model.plan(len(X_train))
        models = [plan.execute(X_train, y_train).value for _ in range(n_releases)]
        releases = [released.score(X_test, y_test) for released in models]
        scores.append(releases)
        print(
            f"  private, epsilon {epsilon:>4}: {np.mean(releases):.3f} +- {np.std(releases):.3f}, "
            f"{plan.mechanism.geometry.basis.n_released} directions, {plan.share_learned:.0%} "
            "learned from the private data"
        )
    print(f"  {plan.guarantee}")
    results[name] = np.array(scores)

# %%
# What privacy costs
# ------------------
# Points are means over 20 releases, bars one standard deviation.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for shift, marker, (name, scores) in zip((0.97, 1.03), "os", results.items(), strict=True):
    ax.errorbar(
        np.array(epsilons) * shift,
        scores.mean(axis=1),
        yerr=scores.std(axis=1),
        marker=marker,
        capsize=3,
        label=f"private, oracle of {name}",
    )
ax.axhline(exact, color="black", linewidth=1, label="exact, not private")
share = max(np.mean(y_test), 1 - np.mean(y_test))
ax.axhline(share, color="gray", linestyle=":", label="most frequent class")
ax.set_xscale("log")
ax.set_xticks(epsilons, [str(epsilon) for epsilon in epsilons])
ax.minorticks_off()
ax.set_xlabel("epsilon (smaller is more private)")
ax.set_ylabel("accuracy on 86 test records")
ax.set_title("Private SVM on breast-cancer data, gamma = 0.05")
ax.legend(loc="lower right")
fig.savefig("private_svm.png", dpi=150)
print("\nThe figure is saved as private_svm.png.")
plt.show()
