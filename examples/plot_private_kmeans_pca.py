"""
Can I release clusters and principal components?
================================================

Clusters have no order and principal components have no sign. If two fits to almost the same
records happen to number the clusters otherwise, the centers seem to have jumped across the plane,
and noise that hides such a jump hides everything. skdp therefore brings every fit into the order,
and gives it the signs, of a fit to public records before it measures a change. Nothing has to be
said for it: `PrivateEstimator` knows KMeans and PCA.

The records are the handwritten digits of scikit-learn. One half plays the public sample. Of the
other half we want the two main directions, and the clusters in the plane that they span.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UtilityWarning,
)

# Public records alone would do here, of which each plan warns. The example is about the promise.
warnings.simplefilter("ignore", UtilityWarning)

X = load_digits().data / 16
X_public, X_private = X[::2], X[1::2]

# %%
# Private components
# ------------------
#
# The mean digit and two directions are 192 numbers. How much one digit among 898 can change them
# is sampled on pairs of datasets drawn from the public half.

sampler = SensitivitySampler(PublicDataOracle(X_public), gamma=0.05, n_pairs=99, random_state=0)
pca = PrivateEstimator(
    PCA(n_components=2),
    mechanism=LaplaceMechanism(epsilon=10),
    sensitivity=sampler,
    random_state=0,  # for the example only: without it the noise is secret
)
pca.fit(X_private)
print(pca.guarantee_)

# %%
# The released components are put back to unit length and right angles. In the order and with the
# signs of the public fit they can be laid beside those of the private half.

exact = PCA(n_components=2).fit(X_private).components_
released = pca.estimator_.components_
order = np.abs(released @ exact.T).argmax(axis=1)
exact = exact[order] * np.sign(np.sum(released * exact[order], axis=1, keepdims=True))

fig, axes = plt.subplots(2, 2, figsize=(5, 5), layout="constrained")
for row, components, label in zip(axes, (exact, released), ("exact", "private"), strict=True):
    for i, (ax, component) in enumerate(zip(row, components, strict=True)):
        ax.imshow(component.reshape(8, 8), cmap="RdBu", vmin=-0.4, vmax=0.4)
        ax.set(xticks=[], yticks=[], title=f"component {i + 1}, {label}")
cosines = np.sum(released * exact, axis=1)
fig.suptitle(f"$\\epsilon = 10$, cosines {cosines[0]:.2f} and {cosines[1]:.2f}")
plt.show()

# %%
# Private clusters
# ----------------
#
# What has been released may be used at no further cost. The private components become a fixed
# first step, wrapped in FrozenEstimator, and four centers in their plane are released at
# epsilon = 1. Together the two releases promise epsilon = 11, since the losses add up.

clusters = PrivateEstimator(
    make_pipeline(FrozenEstimator(pca.estimator_), KMeans(n_clusters=4, n_init=3)),
    mechanism=LaplaceMechanism(epsilon=1),
    sensitivity=sampler,
    random_state=0,
)
clusters.fit(X_private)
print(clusters.guarantee_)

# %%
# The points below are the private digits themselves, so this figure is not private. It is drawn
# to show what the noise has done to the centers.

plane = pca.estimator_.transform(X_private)
centers = KMeans(n_clusters=4, n_init=3, random_state=0).fit(plane).cluster_centers_
private_centers = clusters.estimator_[-1].cluster_centers_

fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.scatter(*plane.T, c=clusters.predict(X_private), cmap="Set2", s=12, alpha=0.6)
ax.scatter(*centers.T, marker="o", s=90, facecolor="none", edgecolor="black", label="exact")
ax.scatter(*private_centers.T, marker="x", s=70, color="tab:red", label="private, $\\epsilon = 1$")
ax.set(xlabel="component 1", ylabel="component 2", title="Centers of four clusters of digits")
ax.legend()
plt.show()
