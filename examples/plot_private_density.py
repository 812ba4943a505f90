"""
A private density
=================

A kernel density estimate is made of all its records: whoever has it has the data. Here it is
released as a function instead. It is evaluated on a lattice, the values get noise, and a smooth
density is made of them, which holds nothing else. It can be evaluated and drawn from like any
other.

The data are the body-mass index and the blood pressure of 442 diabetes patients.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KernelDensity

from skdp import (
    BernsteinTransformer,
    GaussianOracle,
    LaplaceMechanism,
    PrivateDensityDisplay,
    PrivateEstimator,
    SensitivitySampler,
)

patients = load_diabetes(scaled=False).data
bmi, pressure = patients[:, [2]], patients[:, [3]]

# %%
# One column
# ----------
# Three things are declared, and none of them is taken from the data. The oracle draws from what is
# known about people at large: a mean body-mass index of 27, and a standard deviation of 5. The box
# goes from 15 to 45. The bandwidth of the kernel is 1.5. The 21 points of the lattice are as far
# apart as that. The band says what the noise leaves open: the exact density is in it at nine
# points of ten, about.

kde = KernelDensity(bandwidth=1.5)
model = PrivateEstimator(
    kde,
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity=SensitivitySampler(GaussianOracle([27], [5**2]), gamma=0.05, random_state=0),
    release=BernsteinTransformer(degree=20, order=3, feature_range=(15, 45)),
)
model.fit(bmi)
print(model.guarantee_)
print(model.sensitivity_)
print(model.estimator_)
display = PrivateDensityDisplay.from_estimator(model, level=0.9, random_state=0)
display.names = ["body-mass index"]
display.plot()
plt.show()

# %%
# The release is a density: never negative, with an integral of one. Records drawn from it belong to
# no person. Five releases at each level show how large the noise is; with real data, make only one.

grid = np.linspace(15, 45, 301)[:, None]
exact = np.exp(clone(kde).fit(bmi).score_samples(grid))
cell = grid[1] - grid[0]
model.set_params(sensitivity=model.sensitivity_)
fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
for ax, epsilon in zip(axes, (0.1, 0.3, 1.0), strict=True):
    model.set_params(mechanism__epsilon=epsilon)
    for repeat in range(5):
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
# In two dimensions there are 225 values. The kernel is round, so the columns are brought to one
# scale by public numbers first. The oracle again describes people at large, with a blood pressure
# of 93 and a standard deviation of 13, and a mild correlation of the two.

unit = np.array([5.0, 13.0])
X = np.hstack([bmi, pressure]) / unit
center, box = np.array([27, 93]) / unit, np.array([(15, 45), (55, 140)]) / unit[:, None]
kde = KernelDensity(bandwidth=0.45)
model = PrivateEstimator(
    kde,
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity=SensitivitySampler(
        GaussianOracle(center, [[1, 0.3], [0.3, 1]]), gamma=0.05, random_state=0
    ),
    release=BernsteinTransformer(degree=14, order=6, feature_range=box),
)
model.fit(X)
print(model.guarantee_)
print(model.sensitivity_)

# %%
axes_of_grid = [np.linspace(low, high, 80) for low, high in box]
mesh = np.stack(np.meshgrid(*axes_of_grid), axis=-1).reshape(-1, 2)
surfaces = {"exact": np.exp(clone(kde).fit(X).score_samples(mesh))}
for epsilon in (1.0, 3.0):
    model.set_params(mechanism__epsilon=epsilon, sensitivity=model.sensitivity_)
    surfaces[f"private, epsilon {epsilon}"] = np.exp(model.fit(X).score_samples(mesh))

top = surfaces["exact"].max()
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, (name, surface) in zip(axes, surfaces.items(), strict=True):
    filled = ax.contourf(
        axes_of_grid[0] * unit[0],
        axes_of_grid[1] * unit[1],
        surface.reshape(80, 80),
        levels=np.linspace(0, 1.3 * top, 14),
        cmap="viridis",
        extend="max",
    )
    error = np.abs(surface - surfaces["exact"]).mean() * np.ptp(box, axis=1).prod()
    ax.set(title=f"{name}", xlabel="body-mass index")
    print(f"{name:22} integral of the absolute difference from exact: {error:.3f}")
axes[0].set_ylabel("blood pressure")
fig.colorbar(filled, ax=axes, label="density")
plt.show()
