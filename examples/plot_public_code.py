"""
What does a public code do to my numbers?
=========================================

A fitted model is a vector of numbers, and by default skdp does not add noise to each of them. It
releases a few directions of the vector, and fills in the rest by what models of public records have
in common. This page draws one such code: which directions it takes, what the noise leaves of each,
and what is known of every coefficient before and after the release.

The data are scikit-learn's breast-cancer records, their features public in one half and private in
the other. No diagnosis is public.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
    UtilityWarning,
)

data = load_breast_cancer(as_frame=True)
scaler = MinMaxScaler().set_output(transform="pandas").fit(data.data[::2])
X_public, X_private = scaler.transform(data.data[::2]), scaler.transform(data.data[1::2])
y_private = data.target[1::2]
oracle = RandomTaskOracle(X_public, classes=[0, 1], least_share=0.3)  # neither class is rare

# %%
# Which directions
# ----------------
# Each released number is a weighted sum of the 31. What it says of them is its correlation with
# each over models of public records: a number that it hardly moves with stays what it was, one that
# it moves with is filled in.
#
# The order is that of the ratio of signal to noise: how much the sum differs between models of
# public records, by the standard deviation of the noise in it.

model = PrivateEstimator(
    LogisticRegression(C=10),
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity=SensitivitySampler(oracle, random_state=0),
)
warnings.simplefilter("ignore", UtilityWarning)  # a plan warns of the smallest epsilon
plans = {}
for epsilon in (0.1, 1.0, 10.0):
    plans[epsilon] = model.set_params(mechanism__epsilon=epsilon).plan(len(X_private))
    print(f"epsilon {epsilon:g}: {plans[epsilon].mechanism.geometry.code}")


def released_by(plan):
    """Return spread and correlations of the released numbers over public models, and the noise."""
    code, mechanism = plan.mechanism.geometry.code, plan.mechanism
    covariance = code.covariance
    spread = np.sqrt(np.diag(code.encoder @ covariance))
    order = np.argsort(-spread)
    correlations = covariance[:, order] / (code.deviations[:, None] * spread[order])
    noise = mechanism.unit_deviation(spread.size) * plan.sensitivity.value
    return spread[order], correlations, noise


_, correlations, _ = released_by(plans[1.0])
fig, ax = plt.subplots(figsize=(6.4, 7), layout="constrained")
image = ax.imshow(correlations, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
ax.set_xticks(range(correlations.shape[1]), range(1, 1 + correlations.shape[1]))
ax.set_yticks(range(31), [*data.feature_names, "intercept"], fontsize="small")
ax.set_xlabel("released number")
fig.colorbar(image, label="correlation over models of the oracle")
plt.show()

# %%
# Noise against prior
# -------------------
# Where a ratio is below 1 there is more noise than signal, and the decoder draws the number to its
# prior mean: of the signal's variance it believes ``ratio^2 / (ratio^2 + 1)``. A larger epsilon
# resolves more directions.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (epsilon, plan) in zip(axes, plans.items(), strict=True):
    spread, _, noise = released_by(plan)
    ax.semilogy(range(1, 1 + spread.size), spread / noise, "o", color="#0072B2")
    ax.axhline(1, color="#D55E00", ls="--")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel=f"released number, of {spread.size}", ylabel="prior deviation / noise")
    ax.set_title(f"epsilon {epsilon:g}")
    ax.label_outer()
plt.show()

# %%
# What is known of each number
# ----------------------------
# Before the release a coefficient is known as far as public models agree: gray. After it, a
# standard error tells what noise and prior leave open: blue. Both are public. Black are the exact
# coefficients, which nobody would see. At .1 blue is wider than gray: two noisy numbers cannot tell
# whether the private data are much unlike the public, and the standard errors allow for it.

exact = LogisticRegression(C=10).fit(X_private, y_private).coef_.ravel()
at = np.arange(exact.size)
fig, axes = plt.subplots(3, 1, figsize=(8, 7.5), sharex=True, sharey=True, layout="constrained")
for ax, (epsilon, plan) in zip(axes, plans.items(), strict=True):
    released = plan.execute(X_private, y_private, random_state=0)
    code = plan.mechanism.geometry.code
    ax.bar(at, 2 * code.deviations[:-1], bottom=(code.mean - code.deviations)[:-1], color="0.87")
    ax.errorbar(
        at,
        released.value.coef_.ravel(),
        yerr=released.standard_errors["coef_"].ravel(),
        fmt="o",
        color="#0072B2",
        markersize=4,
        label="released, with standard error",
    )
    ax.plot(at, exact, "x", color="black", markersize=5, label="exact, not private")
    accuracy = released.value.score(X_private, y_private)
    ax.set_ylabel("coefficient")
    ax.set_title(
        f"epsilon {epsilon:g}: {plan.share_learned:.0%} learned from the private data, "
        f"accuracy {accuracy:.2f}",
        fontsize=10,
    )
axes[0].bar([0], [0], color="0.87", label="prior, one standard deviation")
axes[-1].set_xticks(at, data.feature_names, rotation=90, fontsize=7)
handles, labels = axes[0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=9)
plt.show()
