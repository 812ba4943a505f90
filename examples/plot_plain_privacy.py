"""
How do I get plain differential privacy?
========================================

A sampled sensitivity comes with a gamma: its promise is about data like the oracle's. For models
that are made of sums over bounded records the sensitivity is known on paper, and
``sensitivity="known"`` derives it from the estimator and the public clip in front of it. The
promise then holds for every record that there can be.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import ClipBox, ClipNorm, LaplaceMechanism, MomentClassifier, PrivateEstimator

# %%
# From a raw table to a private model
# -----------------------------------
#
# The columns have different units, so a scaler is fitted to public records, and frozen. What it
# yields is shortened to the radius in which half of the public records lie.

X, y = load_breast_cancer(return_X_y=True)
X_public, X, X_test, y, y_test = X[:142], X[142:426], X[426:], y[142:426], y[426:]
scaler = StandardScaler().fit(X_public)
radius = float(np.median(np.linalg.norm(scaler.transform(X_public), axis=1)))
model = PrivateEstimator(
    make_pipeline(FrozenEstimator(scaler), ClipNorm(radius), MomentClassifier()),
    mechanism=LaplaceMechanism(epsilon=3.0),
    sensitivity="known",
    classes=[0, 1],
)
print(f"accuracy {model.fit(X, y).score(X_test, y_test):.3f}")
print(model.guarantee_)

# %%
# Without any public data
# -----------------------
#
# With many records the ranges of the columns, which everybody knows, are enough.

X, y = make_classification(24_000, 20, random_state=0)
X, X_test, y, y_test = X[:20_000], X[20_000:], y[:20_000], y[20_000:]
epsilons = [0.1, 0.2, 0.5, 1.0, 3.0]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for estimator in (MomentClassifier(constant=3), GaussianNB()):
    scores = []
    for epsilon in epsilons:
        model = PrivateEstimator(
            make_pipeline(ClipBox(-3, 3), estimator),
            mechanism=LaplaceMechanism(epsilon),
            sensitivity="known",
            classes=[0, 1],
        )
        scores.append(model.fit(X, y).score(X_test, y_test))
    name = type(estimator).__name__
    ax.semilogx(epsilons, scores, "o-", label=name)
    exact = make_pipeline(ClipBox(-3, 3), estimator).fit(X, y).score(X_test, y_test)
    ax.axhline(exact, color=ax.lines[-1].get_color(), lw=1, ls="--")
    print(f"{name}: {np.round(scores, 3)}, without noise {exact:.3f}")
ax.set_xlabel("epsilon")
ax.set_ylabel("accuracy")
ax.legend()

# %%
# What has no bound on paper is refused before any work, with the reason: a scaler that would be
# fitted to the private records moves all of them when one changes.

try:
    model.set_params(estimator=make_pipeline(StandardScaler(), ClipNorm(), GaussianNB())).fit(X, y)
except ValueError as error:
    print(error)
