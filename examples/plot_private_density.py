"""
Can I release a density?
========================

A kernel density estimate is made of all its records: whoever has it has the data. Here it is
released as a function instead. It is evaluated on a lattice, the values get noise, and a smooth
density is made of them, which holds nothing else. It can be evaluated and drawn from like any
other.

The data are the body-mass index and the blood pressure of 442 diabetes patients.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skdp import BernsteinTransformer, LaplaceMechanism, PrivateEstimator, RandomDensityOracle
from skdp.displays import PrivateDensityDisplay

patients = load_diabetes(scaled=False).data
bmi, pressure = patients[:, [2]], patients[:, [3]]

# %%
# One column
# ----------
# Two things are declared, and neither is taken from the data. The box goes from 15 to 45. The
# bandwidth of the kernel is 1.5, and the 21 points of the lattice are as far apart as that. How
# much one record moves the values follows from the kernel: it is known, so the promise is plain
# differential privacy, and no oracle is needed. The bars are where the exact density is at the
# points of the lattice, nine times of ten; the line is the polynomial made of the released values.

kde = KernelDensity(bandwidth=1.5)
model = PrivateEstimator(
    kde,
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity="known",
    release=BernsteinTransformer(degree=20, feature_range=(15, 45)),
)
model.fit(bmi)
print(model.guarantee_)
print(model.estimator_)
display = PrivateDensityDisplay.from_estimator(model, level=0.9, random_state=0)
display.names = ["body-mass index"]
display.plot()
plt.show()

# %%
# The release is a density: never negative, with an integral of one. Records drawn from it belong to
# no person. Five releases at each level show how large the noise is; with real data make only one,
# without a seed.

grid = np.linspace(15, 45, 301)[:, None]
exact = np.exp(clone(kde).fit(bmi).score_samples(grid))
cell = grid[1] - grid[0]
fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
for ax, epsilon in zip(axes, (0.1, 0.3, 1.0), strict=True):
    for repeat in range(5):
        model.set_params(mechanism__epsilon=epsilon)
        model.random_state = repeat
        density = np.exp(model.fit(bmi).score_samples(grid))
        ax.plot(grid, density, color="C3", alpha=0.5, label="private" if repeat == 0 else None)
    ax.plot(grid, exact, color="black", label="exact")
    ax.hist(
        model.sample(5000, random_state=0)[:, 0],
        bins=40,
        range=(15, 45),
        density=True,
        color="0.85",
    )
    ax.set(title=f"epsilon {epsilon}", xlabel="body-mass index")
    print(f"epsilon {epsilon}: integral of the last release {density.sum() * cell[0]:.3f}")
axes[0].set_ylabel("density")
axes[0].legend()
plt.show()

# %%
# The gray bars are 5,000 records drawn from the last release of each level.

# %%
# Two columns
# -----------
# In two dimensions there are 225 values. The kernel is round, so a scaler of the box, which is
# public, stands before it; columns keep their names and units. So many values need more epsilon, or
# a prior: an oracle of which the model learns in public what smooth densities on the box have in
# common. The promise does not depend on it.

X = pd.DataFrame(np.hstack([bmi, pressure]), columns=["bmi", "pressure"])
box = {"bmi": (15, 45), "pressure": (55, 140)}
scaler = FrozenEstimator(MinMaxScaler().fit(pd.DataFrame(box)))
model = PrivateEstimator(
    make_pipeline(scaler, KernelDensity(bandwidth=0.07)),
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity="known",
    prior=RandomDensityOracle(box),
    release=BernsteinTransformer(degree=14, feature_range=box),
)
displays = {}
for epsilon in (1.0, 3.0):
    model.set_params(mechanism__epsilon=epsilon).fit(X)
    displays[f"epsilon {epsilon}"] = PrivateDensityDisplay.from_estimator(model, n_points=80)
    print(model.guarantee_)

# %%
# The exact density, of the scaled columns, is brought to their units by the area of the box.

grid = displays["epsilon 1.0"].grid
area = np.prod([high - low for low, high in box.values()])
mesh = pd.DataFrame(
    np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, 2), columns=X.columns
)
exact = np.exp(clone(model.estimator).fit(X).score_samples(mesh)).reshape(80, 80) / area
displays = {"exact": PrivateDensityDisplay(grid=grid, values=exact, names=list(box)), **displays}
fig, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for ax, (name, display) in zip(axes, displays.items(), strict=True):
    display.plot(ax=ax, vmax=exact.max())
    ax.set_title(name)
    error = np.abs(display.values - exact).mean() * area
    print(f"{name:11} integral of the absolute difference from exact: {error:.3f}")
plt.show()
