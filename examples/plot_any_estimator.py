"""
Can I release gradient boosting privately?
==========================================

A boosted model has no coefficients to which noise could be added. So its *predictions* at public
records get noise, and a fresh model of the same class is fitted to what is released. Two promises
are shown: a sampled one, and a plain one by sample and aggregate. The table is mixed: numbers, and
categories that the model takes as they are.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from skdp import (
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    RandomTaskOracle,
    SampleAndAggregate,
    SensitivitySampler,
    UtilityWarning,
)

# %%
# A mixed table
# -------------
# Customers, some of whom leave. The features of 500 of them are public, whether they leave is not.


def customers(n_samples, rng):
    """Draw a table, and who leaves."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n_samples).astype(float),
            "months": rng.exponential(30, n_samples).round(),
            "contract": pd.Categorical(
                rng.choice(["monthly", "yearly", "free"], n_samples, p=[0.5, 0.4, 0.1])
            ),
        }
    )
    score = 1.5 * (frame["contract"] == "monthly") - 0.04 * frame["months"]
    score += 1.2 * (frame["age"] < 35) + rng.logistic(scale=0.4, size=n_samples)
    return frame, (score > 0).astype(int).to_numpy()


rng = np.random.default_rng(0)
X_public, _ = customers(500, rng)
X, y = customers(2000, rng)
X_test, y_test = customers(2000, rng)
boosting = HistGradientBoostingClassifier(
    max_iter=5, categorical_features="from_dtype", random_state=0
)
exact = clone(boosting).fit(X, y).score(X_test, y_test)

# %%
# Two promises
# ------------
# The sampler fits the model to pairs of public tables. Sample and aggregate fits it to blocks of
# the private records, and needs no such pairs: its promise holds for all records.

oracle = RandomTaskOracle(X_public, classes=[0, 1])
settings = {
    "random: predictions, gamma = 0.1": {
        "sensitivity": SensitivitySampler(oracle, gamma=0.1, n_pairs=19, random_state=0),
        "release": "predictions",
        "mechanism": LaplaceMechanism(1.0),
    },
    "plain: sample and aggregate": {
        "sensitivity": SampleAndAggregate(n_blocks=40, random_state=0),
        "prior": oracle,
        "mechanism": L2LaplaceMechanism(1.0),  # for a bound on the L2 norm, as it is here
    },
}
epsilons, scores = [0.3, 3.0], {name: [] for name in settings}
warnings.simplefilter("ignore", UtilityWarning)  # what a release is worth is shown here
for name, options in settings.items():
    for epsilon in epsilons:
        model = PrivateEstimator(boosting, **options).set_params(mechanism__epsilon=epsilon)
        plan = model.plan(len(X), like=(X_public[:2], np.array([0, 1])))
        releases = [plan.execute(X, y, random_state=seed) for seed in range(3)]
        found = [released.value.score(X_test, y_test) for released in releases]
        scores[name].append(found)
        print(f"{name}, epsilon {epsilon:g}: {np.mean(found):.3f}, exact {exact:.3f}")
    print(f"\n{plan}\n")

# %%
# What they are worth
# -------------------
# Points are means of three releases, bars their range. The plain promise costs accuracy here: a
# block has only 50 records.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, found), color in zip(scores.items(), ["#0072B2", "#D55E00"], strict=True):
    means = np.mean(found, axis=1)
    span = np.abs([np.min(found, axis=1) - means, np.max(found, axis=1) - means])
    ax.errorbar(epsilons, means, yerr=span, marker="o", capsize=3, color=color, label=name)
ax.axhline(exact, color="black", linewidth=1, label="exact, not private")
share = max(np.mean(y_test), 1 - np.mean(y_test))
ax.axhline(share, color="gray", linestyle=":", label="most frequent class")
ax.set_xscale("log")
ax.set_xticks(epsilons, [str(epsilon) for epsilon in epsilons])
ax.minorticks_off()
ax.set(xlabel="epsilon", ylabel="accuracy on 2000 test records", title="Private gradient boosting")
ax.legend()
plt.show()
