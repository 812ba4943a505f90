"""
Does the promise hold?
======================

The promise of a sampled sensitivity is about the pairs of an oracle: all but a share gamma of them
are covered. Does it hold, and what about everybody else? Here a private ridge regression is audited
on new pairs of its oracle, on an outlier, and on the worst pair that a search can find.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SensitivitySampler
from skdp.audit import audit_estimator, find_large_sensitivity

X, y = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
X_public, X, y = X[::2], X[1::2], y[1::2]
oracle = RandomTaskOracle(X_public, y_mean=150, y_scale=60)

model = PrivateEstimator(
    Ridge(alpha=10.0),
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity=SensitivitySampler(oracle, random_state=0),
    random_state=0,
).fit(X, y)
print(model.guarantee_)

# %%
# Pairs of the oracle
# -------------------
# On each new pair the model is fitted twice, exactly, and the noise is drawn many times around the
# two results. How well can an observer tell which of the two datasets was used? The answer is a
# lower bound on the epsilon of that pair.

audit = audit_estimator(model, X, y, pairs=60, stacked=True, rng=0)
print(audit)

# %%
# Most pairs are much better protected than the promise says: it is the sensitive ones that set the
# noise.

epsilon = model.guarantee_.epsilon
fig, ax = plt.subplots(layout="constrained")
share = np.arange(1, 61) / 60
ax.step(np.sort(audit.lower_bounds), share, where="post", label="audited on 60 new pairs")
ax.axvline(epsilon, color="0.4", ls="--", label="claimed epsilon")
ax.axhline(1 - audit.promise.gamma, color="C3", ls=":", label="1 - gamma")
ax.set(xlabel="lower bound on epsilon", ylabel="share of pairs", xlim=(0, None))
ax.legend(loc="lower right")
plt.show()

# %%
# A record that nobody thought plausible
# --------------------------------------
# A patient whose values are all ten standard deviations off is not a record of the oracle, and the
# promise does not speak of such a patient. The audit says what that means.

outlier = (np.full((1, X.shape[1]), 10.0), [600.0])
print(audit_estimator(model, X, y, record=outlier, pairs=5, stacked=True, rng=0))

# %%
# The worst pair in the box
# -------------------------
# A search over the same oracle, which may also mix the coordinates of its records, finds pairs that
# random drawing hardly ever meets. They are what gamma stands for.


def parameters(X, y):
    """Return what is released."""
    fitted = Ridge(alpha=10.0).fit(X, y)
    return np.append(fitted.coef_, fitted.intercept_)


found = find_large_sensitivity(
    parameters,
    oracle,
    n_samples=len(X),
    n_iter=600,
    geometry=model.sensitivity_.geometry,  # as it was calibrated
    random_state=0,
)
ratio = found.norm / model.sensitivity_.value
print(f"largest of {found.n_pairs} norms: {found.norm:.4g}, {ratio:.3g} times the sensitivity")
