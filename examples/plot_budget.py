"""
How do many releases share one budget?
======================================

A team may spend epsilon = 3 on its customers' data in a quarter, with a gamma of at most .4. Each
release is paid for in one file, before it looks at the data: a mean, a model, a search for a better
model, and some more. One that no longer fits is refused. At the end there is a table for the files,
and a figure for the meeting.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.linear_model import Ridge
from sklearn.preprocessing import minmax_scale

from skdp import (
    BudgetExceededError,
    LaplaceMechanism,
    PrivacyAccountant,
    PrivateEstimator,
    PrivateSearchCV,
    PublicDataOracle,
    SensitivitySampler,
    UtilityWarning,
    release,
)
from skdp.displays import BudgetDisplay

# Public records alone would do here, of which each plan warns. The example is about the promise.
warnings.simplefilter("ignore", UtilityWarning)

X, y = make_regression(n_samples=1200, n_features=3, noise=20.0, random_state=0)
X, y = minmax_scale(X), minmax_scale(y)
oracle = PublicDataOracle(X[:400], y[:400])
X, y = X[400:], y[400:]

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "customers.db"
ledger = PrivacyAccountant(path, epsilon=3.0, gamma=0.4)

# %%
# January: a mean
# ---------------
#
# The mean of numbers in [0, 1] changes by 1 / n at most. That is known on paper, so gamma is 0. All
# releases of the block are paid from the ledger, and its rows get the label.

with ledger.as_default(label="January"):
    spending = release(np.mean, y, mechanism=LaplaceMechanism(0.2), sensitivity=1 / len(y))
print(f"mean {spending.value:.3f}, together {spending.budget}")

# %%
# February: two models from one estimate
# --------------------------------------
#
# A plan samples the sensitivity once. It may be executed more than once, and each time epsilon and
# gamma are spent.

model = PrivateEstimator(
    Ridge(alpha=1.0),
    mechanism=LaplaceMechanism(epsilon=0.5),
    sensitivity=SensitivitySampler(oracle, gamma=0.05, random_state=0),
)
plan = model.plan(len(y), like=(X, y))
for week in (1, 2):
    with ledger.as_default(label=f"February, week {week}"):
        print(f"week {week}: together {plan.execute(X, y).budget}")

# %%
# March: a search
# ---------------
#
# A few fits of random penalties are scored, all with noise, and the best one is released. Whatever
# their number, the search costs three times the epsilon of a fit.

search = PrivateSearchCV(
    clone(model).set_params(mechanism__epsilon=0.25),
    {"estimator__alpha": [0.1, 1.0, 10.0]},
    y_range=(0, 1),
)
with ledger.as_default(label="March"):
    search.fit(X, y)
print(f"{search.best_params_}, together {search.budget_}")

# %%
# A colleague, who has opened the same file, asks for more than is left. Nothing is looked at, and
# the error says what would still be possible.

colleague = PrivacyAccountant(path, epsilon=3.0, gamma=0.4)
for epsilon in (1.5, colleague.remaining(2)):
    mechanism = LaplaceMechanism(epsilon)
    try:
        release(np.mean, X[:, 0], mechanism=mechanism, sensitivity=1 / len(y), accountant=colleague)
        print(f"released with epsilon = {epsilon:g}")
    except BudgetExceededError as error:
        print(f"epsilon = {epsilon:g} is refused: at most {error.left:g}")

# %%
# What was spent
# --------------
#
# The rows hold what was promised, and nothing of the data. On the command line,
# ``python -m skdp budget customers.db`` prints them too.

rows = pd.DataFrame(ledger.rows())[["label", "epsilon", "gamma", "law"]]
print(rows.to_string(index=False, max_colwidth=40))
print(ledger)

# %%
# The steps say which release the budget went to, and the height of the last one what is left.

BudgetDisplay.from_accountant(ledger).plot()

# %%
# The total counts the gamma of each release, though two of them share an estimate.

total = ledger.total()
print(f"gamma {total.gamma:.3g} of {total.n_releases} releases")
folder.cleanup()
