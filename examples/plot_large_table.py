"""
How do I learn from a table that stays in its files?
====================================================

A folder of Parquet files goes to a private model that can be handed on, and no row comes to Python.
DuckDB, which is one package and needs no server, counts the rows. For a table of a database, of
polars, Dask, Ibis or Spark all is the same but the line that opens it.

The table is made up: 400,000 claims with the age of the person, the amount, the district, and
whether the claim was denied.
"""

from pathlib import Path
from tempfile import mkdtemp

import duckdb
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from skdp import Category, ClassTables, LaplaceMechanism, Number, PrivateEstimator, Schema, load
from skdp.displays import ClassTablesDisplay

folder = Path(mkdtemp())
made = duckdb.sql(
    """
    SELECT age, amount, district,
           ln(amount) + age / 20 + (district = 'north')::INT + 2 * random() > 12 AS denied
    FROM (
        SELECT (18 + 70 * random())::INT AS age,
               round(100 * exp(6 * random() * random()), 2)::DOUBLE AS amount,
               ['north', 'south', 'west'][(1 + 2 * random())::INT] AS district
        FROM range(400000)
    )
    """
)
made.write_parquet(str(folder / "claims"), per_thread_output=True)

# %%
# To a saved model
# ----------------
# The schema says what a codebook would. The number of rows is public, and declared. The plan needs
# no row: it says what the release is expected to be worth.

claims = duckdb.read_parquet(str(folder / "claims" / "*.parquet"))
schema = Schema(
    {
        "age": Number(18, 88, integer=True),
        "amount": Number(100, 50_000, log=True),
        "district": Category(["north", "south", "west"]),
    },
    classes=[False, True],
)
model = PrivateEstimator(
    LogisticRegression(),
    mechanism=LaplaceMechanism(epsilon=0.5),
    sensitivity=ClassTables(schema, n_samples=400_000, random_state=0),
)
print(model.plan(n_samples=400_000))

# %%
# The fit asks DuckDB for the number of rows, for the counts, and for the cells of all rows, from
# which a score of all columns is corrected.

model.fit(claims, "denied")
model.save(folder / "model")
print(model.guarantee_)

# %%
# What it holds
# -------------
# Counts by cell and label, from which the log odds of each cell follow.

ClassTablesDisplay.from_estimator(model).plot()
plt.show()

# %%
# Whoever gets the folder needs neither the table nor DuckDB.

released = load(folder / "model").value
print(released.predict([[30, 200.0, "south"], [80, 20_000.0, "north"]]))
