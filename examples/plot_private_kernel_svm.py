"""
Can I release a kernel machine?
===============================

A support vector machine with a Gaussian kernel keeps its support vectors, which are records of the
data. There is no list of parameters to which noise could be added. Its decision function can be
released all the same: by its values on a lattice, from which a smooth function is made.

The records are two interleaved half circles, 1,000 to train on. The oracle has a rough idea of
them only: it draws half circles of twice the spread. From its records comes the sensitivity, and
nothing else. The released function is made of 169 noisy values of the private one.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from skdp import (
    BernsteinTransformer,
    LaplaceMechanism,
    PrivateEstimator,
    SensitivitySampler,
    UtilityWarning,
)

# Public records alone would do here, of which each plan warns. The example is about the promise.
warnings.simplefilter("ignore", UtilityWarning)

X, y = make_moons(3000, noise=0.15, random_state=0)
X, X_test, y, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
box = [(-1.6, 2.6), (-1.2, 1.7)]
svm = SVC(C=0.1, gamma=2)

# %%
# The release
# -----------
# Two knobs are about the lattice. Its degree, 12, says how fine it is: a finer one follows the
# decision function better, but there are more values to hide. The order works on released values
# and costs no privacy. Points outside the box are moved to its border.


def moons(n_samples, rng):
    seed = np.random.RandomState(rng.bit_generator)
    return make_moons(n_samples, noise=0.3, random_state=seed)


model = PrivateEstimator(
    svm,
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity=SensitivitySampler(moons, gamma=0.05, random_state=0),
    release=BernsteinTransformer(degree=12, feature_range=box, clip=True),
    classes=[0, 1],
)
model.fit(X, y)
print(model.guarantee_)
print(model.sensitivity_)
print("released:", model.estimator_.coefficients.shape, "coefficients and the labels")

# %%
# Accuracy on 2,000 further records, mean and standard deviation of 20 releases each. They are for
# illustration: a dataset is released once, and the budget warns of more. At infinite epsilon there
# is no noise, and what is missing to the exact machine is the error of the approximation.

warnings.filterwarnings("ignore", "With this release the budget", UserWarning)
# The moons of the oracle are noisier than the private ones, which a release without noise shows.
warnings.filterwarnings("ignore", "What was released contradicts", UserWarning)
model.set_params(sensitivity=model.sensitivity_)
exact = clone(svm).fit(X, y)
print(f"exact: {exact.score(X_test, y_test):.3f}")
for epsilon in (0.3, 0.5, 1.0, 2.0, np.inf):
    model.set_params(mechanism__epsilon=epsilon)
    scores = [model.fit(X, y).score(X_test, y_test) for _ in range(20)]
    print(f"epsilon {epsilon}: {np.mean(scores):.3f} +- {np.std(scores):.3f}")

# %%
# Regions
# -------
# Yellow is where one class is predicted, blue where the other is. Far from all records the
# exact decision function is close to zero, and there the sign is mostly noise.

lines = [np.linspace(low, high, 150) for low, high in box]
mesh = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 2)
functions = {"exact": exact.decision_function(mesh)}
for epsilon in (1.0, 0.3):
    model.set_params(mechanism__epsilon=epsilon).fit(X, y)
    functions[f"private, epsilon {epsilon}"] = model.decision_function(mesh)

fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, functions.items(), strict=True):
    values = values.reshape(150, 150)
    ax.contourf(*lines, values, levels=[-np.inf, 0, np.inf], colors=["#8fb4d9", "#f2dd8d"])
    ax.contour(*lines, values, levels=[0], colors="black", linewidths=1)
    for label, color in ((0, "#1f4e82"), (1, "#9c7a00")):
        ax.scatter(*X_test[y_test == label][:150].T, s=5, color=color)
    ax.set(title=name, xlabel="first feature")
axes[0].set_ylabel("second feature")
plt.show()

# %%
# The points are 300 of the test records, so no record of the training data is shown.
