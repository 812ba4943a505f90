"""
What does each promise cost?
============================

One model, one table and three promises: plain differential privacy, random differential privacy,
and random differential privacy of which the sampled sensitivity has a confidence of its own. The
public side is the same for all: records without labels.
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

from skdp import (
    ClipNorm,
    L2LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
    UtilityWarning,
)

# %%
# Scaler, radius and second moment come from public records. What is left for the private ones to
# say is one moment, 31 numbers.


def split(seed):
    """Return the model, the oracle, private and test records."""
    X, y = load_breast_cancer(return_X_y=True)
    X_public, X, _, y = train_test_split(X, y, test_size=0.75, random_state=seed)
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=seed)
    scaler = StandardScaler().fit(X_public)
    Z = scaler.transform(X_public)
    clip = ClipNorm(float(np.median(np.linalg.norm(Z, axis=1))))
    Z = clip.fit_transform(Z)
    moments = MomentClassifier(
        constant=clip.radius / 2, shrinkage=0.6, second_moment=Z.T @ Z / len(Z)
    )
    model = make_pipeline(FrozenEstimator(scaler), clip, moments)
    return model, RandomTaskOracle(X_public, classes=[0, 1]), (X, y), (X_test, y_test)


# %%
# The plain promise takes the bound that is known on paper, and the oracle as a prior, for utility
# only. The other two sample from the oracle how far one record moves the moment.


def promises(oracle):
    """Return the options of a PrivateEstimator for each promise."""
    sampler = {"gamma": 0.05, "random_state": 0}
    return {
        "plain": {"sensitivity": "known", "prior": oracle},
        "random": {"sensitivity": SensitivitySampler(oracle, **sampler)},
        "conditional": {
            "sensitivity": SensitivitySampler(oracle, **sampler, calibration="conditional")
        },
    }


# %%
# Each plan is public. Ten releases of it are scored, for an experiment: whoever releases the same
# private records so often has no privacy left.

epsilons = [0.03, 0.1, 0.3, 1.0]
scores, exact = {}, []
# Many releases are compared, of the same data, of which their budget warns; one would be made.
warnings.filterwarnings("ignore", "With this release the budget", UserWarning)
for seed in range(3):
    model, oracle, private, test = split(seed)
    exact.append(clone(model).fit(*private).score(*test))
    for name, options in promises(oracle).items():
        for epsilon in epsilons:
            wrapped = PrivateEstimator(
                model,
                mechanism=L2LaplaceMechanism(epsilon),
                classes=[0, 1],
                random_state=0,
                **options,
            )
            with warnings.catch_warnings():
                # what little epsilon buys is to be seen here
                warnings.simplefilter("ignore", UtilityWarning)
                plan = wrapped.plan(len(private[0]), like=private)
            releases = [plan.execute(*private, random_state=number) for number in range(10)]
            found = np.mean([each.value.score(*test) for each in releases])
            scores.setdefault(name, {}).setdefault(epsilon, []).append(found)
        if seed == 0:
            print(f"{name}: {plan.guarantee.short}\n")

# %%
# Two hundred private records are few for a bound that holds for all records there can be.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, found), style in zip(scores.items(), ("o-", "s--", "^:"), strict=True):
    means = [np.mean(found[epsilon]) for epsilon in epsilons]
    ax.semilogx(epsilons, means, style, label=name)
    print(f"{name:12}", np.round(means, 3))
ax.axhline(np.mean(exact), color="black", lw=1, label="not private")
ax.set(xlabel="epsilon (smaller is more private)", ylabel="accuracy")
ax.legend(loc="lower right")
print(f"{'not private':12} {np.mean(exact):.3f}")
