"""
What is known before and after a release?
=========================================

What would a release be worth, which numbers does it consist of, and how well are they and their
predictions known? The pictures are made of public and released numbers only.

The table is scikit-learn's diabetes records: ten measurements of 442 patients, and how the disease
went on a year later. The measurements of one half are taken to be public, and nobody's disease.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SensitivitySampler
from skdp.displays import PrivacyUtilityDisplay, ReleaseDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_public, X_private, _, y_private = train_test_split(X, y, test_size=0.5, random_state=0)
print(X_private.head(3).to_string())

# %%
# A private model
# ---------------
# A pipeline, which noise, and where plausible records come from: this is all that a private model
# takes. The scale of the disease is known, a score of about 150 with a spread of about 60, so the
# oracle gives the public patients diseases by random rules of that size.

scaler = FrozenEstimator(StandardScaler().fit(X_public))
oracle = RandomTaskOracle(X_public, y_mean=150, y_scale=60, noise=1)
model = PrivateEstimator(
    make_pipeline(scaler, Ridge()),
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity=SensitivitySampler(oracle, random_state=0),
)
model.fit(X_private, y_private)
print(model.guarantee_)

# %%
# What it would be worth
# ----------------------
# A plan can be had before any private record is read, with ``model.plan(len(X_private))``. It says
# what would be promised, and how large the errors would be.

plan = model.plan_
print(plan)

# %%
# Whole releases at several levels, simulated on public records, show where between chance and the
# exact model each epsilon is. The levels share the plan's code here; an estimator in the place of
# the plan learns one for each, which takes longer.

PrivacyUtilityDisplay.from_plan(plan, random_state=0).plot()
plt.show()

# %%
# Of the numbers of the model a few directions are released, those that differ between public models
# by more than the noise.

print(plan.mechanism.geometry.code)

# %%
# What came of it
# ---------------
# Each released number, with the interval that noise leaves. A hollow mark would be a number that is
# no better known than before the release.

ReleaseDisplay.from_estimator(model).plot()
plt.show()

# %%
# Some coefficients are hardly known, since the blood serum values go together; predictions are
# known better. In nine of ten cases or more the exact model's are inside of these intervals, which
# say nothing of what becomes of a patient. The exact model is drawn to compare: nobody sees it.

patients = X_public.iloc[:25]
low, high = model.predict_interval(patients, level=0.9, random_state=0).T
released = model.predict(patients)
exact = make_pipeline(scaler, Ridge()).fit(X_private, y_private).predict(patients)
inside = np.mean((low <= exact) & (exact <= high))
print(f"of {len(patients)} exact predictions {inside:.0%} are inside")

fig, ax = plt.subplots(layout="constrained")
at = np.arange(len(patients))
ax.vlines(at, low, high, color="0.6", label="interval, level .9")
ax.plot(at, released, "o", color="#0072B2", label="released model")
ax.plot(at, exact, "x", color="#D55E00", label="exact model, not private")
ax.set(xlabel="patient", ylabel="predicted progression (score)")
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
plt.show()
