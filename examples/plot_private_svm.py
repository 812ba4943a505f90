"""
What does privacy cost a support vector machine?
================================================

A hospital has a classifier that tells malignant from benign tumors, and wants to hand it on. What
does privacy cost it? Here the classifier is released at several levels of privacy, with noise
calibrated to how much it changes when one patient is replaced: by the method as it was published,
and by a *public code*, which is what skdp does by default. A third classifier has a bound that is
known on paper, and keeps the promise for all patients.

The data are scikit-learn's breast-cancer records. The features of one half of them are taken to be
public, the other half is private: 199 records to train on, 86 to test. No diagnosis is public.
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
    ClipNorm,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
    UtilityWarning,
)

X, y = load_breast_cancer(return_X_y=True)
X_public, X_private, _, y_private = train_test_split(
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
svm = make_pipeline(scaler, LinearSVC(C=0.01))
exact = clone(svm).fit(X_train, y_train).score(X_test, y_test)

# %%
# The oracle
# ----------
# An oracle yields plausible records. This one takes public features, and labels each dataset by a
# random linear rule. That neither class is rare is known, and said. The oracle gives nothing of the
# diagnoses away: models that are fitted to its records are on average no better than guessing, and
# all that the private model knows of them it has from the private records.

oracle = RandomTaskOracle(X_public, classes=[0, 1], least_share=0.3)
rng = np.random.default_rng(0)
guesses = [clone(svm).fit(*oracle(199, rng)).score(X_test, y_test) for _ in range(50)]
public = np.mean(guesses)
print(f"accuracy: exact {exact:.3f}, public records alone {public:.3f}, the mean of 50 models")

# %%
# Three methods
# -------------
# As published, all 31 numbers get the same noise, calibrated to their L1 norm, and the sensitivity
# comes from 1305 pairs of datasets that differ in one record. It serves every epsilon.
#
# A code is learned for each epsilon, from 59 pilot pairs: which few directions of the 31 numbers
# are worth their noise, and how the rest follows from them. Then the sensitivity is sampled in
# these directions, from 39 other pairs in each of three strata: none, one or both of the records
# that differ are of the rarer class.
#
# Both promises are *random*: they hold for patients like those of the oracle. How far one patient
# moves a ``MomentClassifier`` behind a clip is known on paper, whatever the patient is like. So its
# promise is *plain*, and the oracle is for accuracy only.
#
# No method needs a private record to plan. Each level is shown by 100 releases, seeded so that the
# figure can be drawn again. They are for illustration: a real dataset is released once and without
# a seed, and every further release spends more of its privacy.

code = SensitivitySampler(oracle, gamma=0.05, random_state=0)
published = clone(code).set_params(calibration="dkw", strata=None, clip=None)
warnings.filterwarnings("ignore", "With strata=None")  # which the published method is
scaled = scaler.transform(X_public)
clip = ClipNorm(float(np.median(np.linalg.norm(scaled, axis=1))))
clipped = clip.fit_transform(scaled)
second_moment = clipped.T @ clipped / len(clipped)
moments = MomentClassifier(constant=clip.radius / 2, shrinkage=0.6, second_moment=second_moment)
moments = make_pipeline(scaler, clip, moments)
epsilons = [0.1, 0.3, 1, 3, 10]
results = {"as published": [], "random, gamma = 0.05": [], "plain": []}
# At a small epsilon noise on every number is worth no more than a guess, of which the plan
# warns; and so many releases of the same data promise nothing together, of which their budget
# warns. The scores are printed here, and only one would be released, so both are switched off.
warnings.simplefilter("ignore", UtilityWarning)
warnings.filterwarnings("ignore", "With this release the budget", UserWarning)
for epsilon in epsilons:
    settings = {
        "as published": (svm, LaplaceMechanism(epsilon, code=None), published, None),
        "random, gamma = 0.05": (svm, LaplaceMechanism(epsilon), code, None),
        "plain": (moments, L2LaplaceMechanism(epsilon), "known", oracle),
    }
    print(f"epsilon {epsilon}")
    for name, (estimator, mechanism, sensitivity, prior) in settings.items():
        model = PrivateEstimator(
            estimator, mechanism=mechanism, sensitivity=sensitivity, prior=prior, classes=[0, 1]
        )
        plan = model.plan(len(X_train), like=(X_public[:2], np.array([0, 1])))
        if sensitivity is published:
            published = plan.sensitivity
        releases = [plan.execute(X_train, y_train, random_state=seed) for seed in range(100)]
        scores = [released.value.score(X_test, y_test) for released in releases]
        results[name].append(scores)
        print(
            f"  {name}: private {np.mean(scores):.3f} +- {np.std(scores):.3f}, exact {exact:.3f}, "
            f"public records alone {public:.3f}"
        )
        if epsilon == 1 and sensitivity is code:  # the one to take first
            promised = plan
print(f"\n{promised}\n\n{promised.guarantee}")

# %%
# What privacy costs
# ------------------
# Points are means over 100 releases, bars one standard deviation.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
styles = {
    "as published": ("#D55E00", "s", 0.95, -75),
    "random, gamma = 0.05": ("#0072B2", "o", 1.0, -22),
    "plain": ("#009E73", "^", 1.05, 12),
}
for name, (color, marker, aside, drop) in styles.items():
    scores = np.array(results[name])
    means, deviations = scores.mean(axis=1), scores.std(axis=1)
    at = np.array(epsilons) * aside
    ax.errorbar(at, means, yerr=deviations, marker=marker, color=color, capsize=3)
    ax.annotate(
        name,
        (at[1], means[1]),
        xytext=(6, drop),
        textcoords="offset points",
        color=color,
        weight="bold",
    )
ax.axhline(exact, color="black", linewidth=1)
ax.text(0.09, exact + 0.008, "exact, not private")
share = max(np.mean(y_test), 1 - np.mean(y_test))
ax.axhline(share, color="gray", linestyle=":")
ax.text(11, share + 0.008, "most frequent class", color="dimgray", ha="right")
ax.set_xscale("log")
ax.set_xticks(epsilons, [str(epsilon) for epsilon in epsilons])
ax.minorticks_off()
ax.set(
    xlabel="epsilon (smaller is more private)",
    ylabel="accuracy on 86 test records",
    ylim=(0.2, 1.03),
    title="Private classifiers of tumor records, with public features",
)
fig.savefig("private_svm.png", dpi=150)
print("\nThe figure is saved as private_svm.png.")
plt.show()
