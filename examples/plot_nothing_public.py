"""
How do I learn from a table if nothing is public?
=================================================

A bank has 30,000 loans, and no record that is public: numbers with a long tail, words, and gaps.
It knows what its forms allow. From this alone it gets a private model, which it can hand on, and a
page for those who must approve it.

The table is made up.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp import Category, ClassTables, LaplaceMechanism, Number, PrivateEstimator, Schema
from skdp.displays import ClassTablesDisplay

JOBS, HOMES = ["none", "employed", "self-employed", "retired"], ["rented", "own", "with parents"]
rng = np.random.default_rng(0)
n = 35_000
age, job = rng.integers(18, 91, n), rng.choice(4, n, p=[0.1, 0.6, 0.15, 0.15])
table = pd.DataFrame(
    {
        "age": age,
        "income": np.where(
            rng.random(n) < 0.1, np.nan, rng.lognormal(10 + 0.3 * (job > 0), 0.6, n)
        ),
        "months": rng.integers(6, 121, n),
        "job": np.array(JOBS, dtype=object)[job],
        "home": rng.choice([*HOMES, None], n),
    }
)
risk = table["months"] / 40 + 1.5 * (job == 0) + (table["home"] == "rented") - age / 30
risk = risk - np.log(table["income"].fillna(20_000) / 20_000) + rng.logistic(size=n)
y = np.where(risk > 1, "late", "paid")
X, X_test, y, y_test = table[:30_000], table[30_000:], y[:30_000], y[30_000:]
print(X.head())

# %%
# What the forms allow
# --------------------
# The schema says what is public: ranges and answers, which are never read off the table. A gap
# counts as the low end, or as the first answer.

schema = Schema(
    {
        "age": Number(18, 90, integer=True),
        "income": Number(0, 1_000_000, log=True),
        "months": Number(6, 120, integer=True),
        "job": Category(JOBS),
        "home": Category(["not said", *HOMES]),
    },
    classes=["paid", "late"],
)
print(schema)

# %%
# What it will be worth
# ---------------------
# The plan needs the number of records and no record. It says what a release of made-up tables as
# large scores, beside the exact model and the majority, so that epsilon can be chosen.

model = PrivateEstimator(
    HistGradientBoostingClassifier(random_state=0),
    mechanism=LaplaceMechanism(epsilon=1.0),
    sensitivity=ClassTables(schema, random_state=0),
)
print(model.plan(n_samples=30_000))

# %%
# What is released
# ----------------
# The fit releases counts by cell and class with noise. Each panel shows how the odds of a late
# payment change with a column. An error bar has one standard error to either side.

model.fit(X, y)
ClassTablesDisplay.from_estimator(model).plot()
plt.show()

# %%
# The model
# ---------
# It has learned from draws of these tables, so it is as private as they are.

words = make_column_transformer(
    (OneHotEncoder(), ["job", "home"]), remainder="passthrough", sparse_threshold=0
)
exact = make_pipeline(words, HistGradientBoostingClassifier(random_state=0)).fit(X, y)
print(f"private   {model.score(X_test, y_test):.3f}")
print(f"exact     {exact.score(X_test, y_test):.3f}")
print(f"majority  {np.mean(y_test == 'paid'):.3f}")
print(model.predict(pd.DataFrame([[25, None, 90, "none", "rented"]], columns=X.columns)))

# %%
# The page for those who approve
# ------------------------------
# What only the owner knows is given here. The report asks for what is missing.

report = model.report(
    record="a loan; a person has one",
    purpose="a score for new loans, computed by a partner",
    public_records="none; the ranges and answers are those of the application form",
    contact="privacy@bank.example",
)
print(report)
