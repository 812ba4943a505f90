"""
How do I get from a data frame to a private model?
==================================================

A table as it comes: numbers, categories and gaps. A model of it that can be handed on takes six
statements, and is a folder in the end: the model, its guarantee, and a card for people.

The table is made of scikit-learn's wine records. Some columns are turned into categories, and some
cells are emptied. One half of the bottles is public, the other private.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SensitivitySampler, load
from skdp.displays import ReleaseDisplay

wine = load_wine(as_frame=True)
table = wine.data[["alcohol", "malic_acid", "flavanoids", "proline"]].copy()
table["color"] = pd.cut(
    wine.data["color_intensity"], [0, 3.5, 6, 13], labels=["pale", "mid", "deep"]
)
table["hue"] = np.where(wine.data["hue"] > 0.9, "cool", "warm")
table.loc[::9, "malic_acid"] = np.nan
grower = pd.Series(wine.target_names[wine.target], name="grower")

public, private = table[::2], table[1::2]
grower_public, grower_private = grower[::2], grower[1::2]
print(private.head())

# %%
# To a saved model
# ----------------
# The whole pipeline is wrapped: the imputer and the scaler learn from private records as the
# regression does. Records are plausible if they are like those of the public half, of which the
# growers are not used: each dataset of the oracle gets labels by a random rule.

columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["malic_acid"]),  # which alone has gaps
    (StandardScaler(), ["alcohol", "flavanoids", "proline"]),
    (OneHotEncoder(handle_unknown="ignore"), ["color", "hue"]),
)
oracle = RandomTaskOracle(public, classes=np.unique(grower_public))
model = PrivateEstimator(
    make_pipeline(columns, LogisticRegression(C=0.1, tol=1e-8, max_iter=1000)),
    mechanism=LaplaceMechanism(epsilon=3.0),
    sensitivity=SensitivitySampler(oracle, gamma=0.1, random_state=0),
)
model.fit(private, grower_private)
folder = Path(mkdtemp()) / "growers"  # made if it is not there
model.save(folder, n_draws=99)  # 99 releases are simulated for what is asked below

# %%
# What it holds
# -------------
# The card says what was promised and what was released, beside its standard error.

print((folder / "README.md").read_text())

# %%
# The same as a figure, for the coefficients. Hollow are those that the oracle knew as well.

_, ax = plt.subplots(figsize=(9, 7), layout="constrained")
ReleaseDisplay.from_estimator(model, attribute="logisticregression__coef_").plot(ax)
plt.show()

# %%
# Whoever gets the folder loads the model, and needs nothing else. It is an ordinary pipeline. The
# simulated releases, which are in the folder too, say how likely the noise did not decide a label.

released = load(folder)
print(released.value.predict(private.head()))
print(released.predict_stability(private.head()))
