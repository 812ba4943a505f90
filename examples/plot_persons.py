"""
What does it cost to protect a person, and not only a record?
==============================================================

A promise about records says nothing of a patient with several visits. With ``groups`` it is about
patients, with all of their visits. Both promises are made here for the same table, by a sampled
sensitivity, and their price is shown.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
)

# %%
# Patients with visits
# --------------------
# Each patient has 1 to 19 visits. Whether a visit ends well depends on what was measured, and on
# the patient, in a way that no column shows. So the visits of a patient are alike.


def patients(n_patients, rng):
    """Draw visits, how they ended, and whose they are."""
    own = rng.normal(size=(n_patients, 3))
    patient = np.repeat(np.arange(n_patients), 1 + rng.binomial(18, expit(own[:, 0] - 0.9)))
    X = own[patient] + 0.6 * rng.normal(size=(len(patient), 3))
    odds = X @ [1.5, -1.0, 0.5] + 1.5 * rng.normal(size=n_patients)[patient]
    return X, (rng.random(len(X)) < expit(odds)).astype(int), patient


rng = np.random.default_rng(0)
(X_public, _, public), (X, y, patient), (X_test, y_test, _) = (
    patients(n, rng) for n in (300, 1000, 1000)
)
scaler = FrozenEstimator(StandardScaler().fit(X_public))
logistic = make_pipeline(scaler, LogisticRegression(C=0.1))
exact = clone(logistic).fit(X, y).score(X_test, y_test)
print(f"{patient.max() + 1} patients, {len(X)} visits, accuracy of the exact model {exact:.3f}")

# %%
# Two promises
# ------------
# The oracle of persons draws public patients with all of their visits. The results of some of them
# are all alike (`person_noise`), as those of the private ones may be. Each visit of a patient
# weighs one over the number of the patient's visits.

tasks = {"classes": [0, 1], "least_share": 0.3}
promises = {
    "a visit, which promises patients nothing": (RandomTaskOracle(X_public, **tasks), {}),
    "a patient with all visits": (
        RandomTaskOracle(X_public, groups=public, **tasks),
        {"groups": patient},
    ),
}
epsilons, scores = [0.03, 0.1, 1.0], {}
warnings.simplefilter("ignore", UserWarning)  # of so many releases, and of what they are worth
for name, (oracle, groups) in promises.items():
    model = PrivateEstimator(
        logistic,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(oracle, gamma=0.1, random_state=0),
    )
    n_samples = 1000 if groups else len(X)
    scores[name] = []
    for epsilon in epsilons:
        model.set_params(mechanism__epsilon=epsilon)
        plan = model.plan(n_samples, like=(X_public[:2], np.array([0, 1])), groups=bool(groups))
        releases = [plan.execute(X, y, **groups, random_state=seed) for seed in range(5)]
        scores[name].append([each.value.score(X_test, y_test) for each in releases])
    means = ", ".join(f"{np.mean(each):.3f}" for each in scores[name])
    print(f"\naccuracy at epsilon .03, .1 and 1: {means}\n{releases[0].guarantee}")

# %%
# What the difference costs
# -------------------------
# A patient moves the model further than a visit does, so the noise is larger. Lines are means of
# five releases, bands their range.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, found), color in zip(scores.items(), ["#D55E00", "#0072B2"], strict=True):
    ax.plot(epsilons, np.mean(found, axis=1), marker="o", color=color, label=name)
    ax.fill_between(epsilons, np.min(found, axis=1), np.max(found, axis=1), color=color, alpha=0.2)
ax.axhline(exact, color="black", linewidth=1, label="exact, not private")
ax.set_xscale("log")
ax.set_xticks(epsilons, [str(epsilon) for epsilon in epsilons])
ax.minorticks_off()
ax.set(xlabel="epsilon", ylabel="accuracy on test visits", title="A promise about one ...")
ax.legend()
plt.show()
