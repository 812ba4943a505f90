"""
A table of numbers and categories
=================================

Tables about people mix numbers with categories, and a model of such a table is a pipeline: encode
the categories, scale the numbers, then fit. All of it learns from the records, so all of it has to
be private. Here two pipelines are released from one table: a logistic regression, of which the
scaler and the coefficients are released, and a random forest, of which the leaves are.

The table is made of scikit-learn's wine records, 178 bottles from three growers. Some of its
columns are turned into what a form would ask for: a color that is pale, medium or deep, and a hue
that is cool or warm. One half of the bottles is taken to be public.
"""

import warnings
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler

# Public records alone would do here, of which each plan warns. The example is about the promise.
warnings.filterwarnings("ignore", "The release may be worth no more", UserWarning)

wine = load_wine(as_frame=True)
table = wine.data[["alcohol", "malic_acid", "flavanoids", "proline"]].copy()
table["color"] = pd.cut(
    wine.data["color_intensity"], [0, 3.5, 6, np.inf], labels=["pale", "medium", "deep"]
)
table["hue"] = np.where(wine.data["hue"] > 0.9, "cool", "warm")
grower = wine.target_names[wine.target]

public, private, grower_public, grower_private = train_test_split(
    table, grower, test_size=0.5, stratify=grower, random_state=0
)
train, test, grower_train, grower_test = train_test_split(
    private, grower_private, test_size=0.3, stratify=grower_private, random_state=0
)
print(train.head(3))

# %%
# Two pipelines
# -------------
# The categories of the encoder are those that the oracle yields, and public. A private record with
# another one is encoded as none of them. The scaler learns means and variances, and these are
# released with noise, like the coefficients.

numbers = ["alcohol", "malic_acid", "flavanoids", "proline"]
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["color", "hue"]), (StandardScaler(), numbers)
)
pipelines = {
    "logistic regression": make_pipeline(
        encode, LogisticRegression(C=0.1, tol=1e-8, max_iter=1000)
    ),
    "random forest": make_pipeline(encode, RandomForestClassifier(10, max_depth=3, random_state=0)),
}

# %%
# Private fits
# ------------
# The sensitivity of the first is sampled by fitting it to pairs of tables that differ in one
# bottle. For the forest, the trees are grown on the oracle's records and stay as they are: the
# private records are only counted in their leaves, which takes no fit. Counts are noised as they
# are here, so that one sees what a level buys; by default the forest would at epsilon 1 be nearly
# that of the oracle, which is the better one, and a warning would say so.
#
# Each level of privacy is shown by 6 releases, for illustration: a real table is released once, and
# the budget warns of more.
# The sampled changes of a level are kept in a directory and read again.

warnings.filterwarnings("ignore", "With this release the budget", UserWarning)
epsilons = [1, 3, 10]
codes = {"logistic regression": "auto", "random forest": None}
n_releases = 6
exact, scores = {}, {}
with TemporaryDirectory() as directory:
    sampler = SensitivitySampler(
        PublicDataOracle(public, grower_public), gamma=0.1, memory=directory, random_state=0
    )
    for name, pipeline in pipelines.items():
        exact[name] = clone(pipeline).fit(train, grower_train).score(test, grower_test)
        mechanism = LaplaceMechanism(epsilon=1.0, code=codes[name])
        model = PrivateEstimator(pipeline, mechanism=mechanism, sensitivity=sampler)
        scores[name] = np.empty((len(epsilons), n_releases))
        for i, epsilon in enumerate(epsilons):
            model.set_params(mechanism__epsilon=epsilon)
            for j in range(n_releases):
                scores[name][i, j] = model.fit(train, grower_train).score(test, grower_test)
        print(f"\n{name}: exact {exact[name]:.3f}")
        print(f"  {model.guarantee_.short}")
        for epsilon, releases in zip(epsilons, scores[name], strict=True):
            print(f"  epsilon {epsilon:>3}: {releases.mean():.3f} +- {releases.std():.3f}")

# %%
# What is in a released pipeline
# ------------------------------
# It is a pipeline of scikit-learn, ready to be handed on. Its encoder knows the public categories.

encoder = model.estimator_[0].named_transformers_["onehotencoder"]
print(f"\ncategories: {[kinds.tolist() for kinds in encoder.categories_]}")
print(f"probabilities of a bottle: {model.predict_proba(test.head(1)).round(2)}")

# %%
# What privacy costs
# ------------------
# Points are means over 6 releases, bars one standard deviation.

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for shift, marker, color, name in zip((0.97, 1.03), "os", ("C0", "C1"), scores, strict=True):
    ax.errorbar(
        np.array(epsilons) * shift,
        scores[name].mean(axis=1),
        yerr=scores[name].std(axis=1),
        marker=marker,
        color=color,
        capsize=3,
        label=f"private {name}",
    )
    ax.axhline(exact[name], color=color, linewidth=1, linestyle="--", label=f"exact {name}")
share = pd.Series(grower_test).value_counts(normalize=True).max()
ax.axhline(share, color="gray", linestyle=":", label="most frequent grower")
ax.set_xscale("log")
ax.set_xticks(epsilons, [str(epsilon) for epsilon in epsilons])
ax.minorticks_off()
ax.set_xlabel("epsilon (smaller is more private)")
ax.set_ylabel(f"accuracy on {len(test)} test records")
ax.set_title(f"Private models of a mixed table, {len(train)} records, gamma = 0.1")
ax.legend(loc="lower right")
plt.show()
