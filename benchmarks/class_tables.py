"""Measure what class tables are worth: accuracy at epsilon .1, .3, 1 and 3, beside exact models.

Schemas are typed as a person would, from what the columns mean, but for the names of categories.

Usage: python benchmarks/class_tables.py [--data FOLDER] [--small]

FOLDER holds adult.data.gz (UCI census income) and rice.arff.gz (UCI rice), and may hold HI.csv,
Fair.csv, OFP.csv, DoctorAUS.csv, Housing.csv and Males.csv of R's package Ecdat, and Chile.csv of
its package car.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import arff
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import (
    Category,
    ClassTables,
    GaussianMechanism,
    LaplaceMechanism,
    Number,
    PrivateEstimator,
    Schema,
)

EPSILONS = 0.1, 0.3, 1.0, 3.0
ADULT = [
    "age",
    "workclass",
    "weight",
    "education",
    "education-num",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "income",
]


def whole(low, high):
    return Number(low, high, integer=True)


def schema_of(X, declared, classes=(0, 1)):
    """Take ranges as declared, and list the categories of all other columns."""
    columns = {
        name: declared.get(name) or Category(sorted(X[name].unique().tolist())) for name in X
    }
    return Schema(columns, classes=classes)


def adult(folder):
    with gzip.open(folder / "adult.data.gz", "rt") as file:
        X = pd.read_csv(file, header=None, names=ADULT, skipinitialspace=True)
    y = (X.pop("income") == ">50K").to_numpy().astype(int)
    weights, capital = Number(10_000, 1_500_000, log=True), Number(0, 99_999, log=True)
    declared = {"age": whole(17, 90), "education-num": whole(1, 16), "hours": whole(1, 99)}
    declared |= {"weight": weights, "gain": capital, "loss": Number(0, 5000, log=True)}
    return X, y, schema_of(X, declared), 22_130


def rice(folder):
    with gzip.open(folder / "rice.arff.gz", "rt") as file:
        X = pd.DataFrame(arff.loadarff(file)[0])
    y = (X.pop("Class") == b"Cammeo").to_numpy().astype(int)
    ends = (5000, 20_000), (300, 600), (100, 300), (50, 120), (0.7, 1), (5000, 20_000), (0.4, 1)
    numbers = (Number(*each) for each in ends)
    return X, y, schema_of(X, dict(zip(X, numbers, strict=True))), 1905


def insurance(folder):
    X = pd.read_csv(folder / "HI.csv", index_col=0).drop(columns=["wght", "hhi2"])
    y = (X.pop("whi") == "yes").to_numpy().astype(int)
    declared = {"whrswk": whole(0, 90), "kidslt6": whole(0, 5), "kids618": whole(0, 8)}
    declared |= {"experience": Number(0, 60), "husby": Number(0, 100)}
    return X, y, schema_of(X, declared), 11_136


def affairs(folder):
    X = pd.read_csv(folder / "Fair.csv")
    y = (X.pop("affairs") > 0).to_numpy().astype(int)
    declared = {"age": Number(17, 45), "yrs_married": Number(0, 25), "children": Number(0, 6)}
    declared |= {name: whole(1, 6) for name in ("occupation", "occupation_husb")}
    declared |= {"rate_marriage": whole(1, 5), "religious": whole(1, 4), "educ": whole(8, 20)}
    return X, y, schema_of(X, declared), 3183


def elderly(folder):
    X = pd.read_csv(folder / "OFP.csv", index_col=0)
    y = (X.pop("privins") == "yes").to_numpy().astype(int)
    declared = {name: whole(0, 50) for name in ("ofp", "ofnp", "opp", "opnp")}
    declared |= {name: whole(0, 10) for name in ("emr", "hosp", "numchron")}
    declared |= {"adldiff": whole(0, 1), "age": Number(6.6, 11), "school": whole(0, 18)}
    return X, y, schema_of(X, declared | {"faminc": Number(0, 20)}), 3084


def visits(folder):
    X = pd.read_csv(folder / "DoctorAUS.csv", index_col=0)
    y = (X.pop("doctorco") > 0).to_numpy().astype(int)
    ends = {"sex": 1, "illness": 5, "actdays": 14, "hscore": 12, "nondocco": 11, "hospadmi": 5}
    ends |= {"hospdays": 80, "medecine": 8, "prescrib": 8, "nonpresc": 8}
    declared = {name: whole(0, end) for name, end in ends.items()}
    declared |= {"age": Number(0.19, 0.72), "income": Number(0, 1.5)}
    return X, y, schema_of(X, declared), 3633


def housing(folder):
    X = pd.read_csv(folder / "Housing.csv", index_col=0)
    price = X.pop("price").to_numpy()
    declared = {"lotsize": Number(1000, 20_000), "bedrooms": whole(1, 6), "garagepl": whole(0, 3)}
    declared |= {name: whole(1, 4) for name in ("bathrms", "stories")}
    return X, (price > np.median(price)).astype(int), schema_of(X, declared), 360


def males(folder):
    X = pd.read_csv(folder / "Males.csv", index_col=0).drop(columns=["nr"]).fillna("none")
    wage = X.pop("wage").to_numpy()
    declared = {"year": whole(1980, 1987), "school": whole(0, 20), "exper": whole(0, 20)}
    return X, (wage > np.median(wage).round(2)).astype(int), schema_of(X, declared), 3000


def vote(folder):
    X = pd.read_csv(folder / "Chile.csv", index_col=0).dropna()
    y = X.pop("vote").to_numpy(dtype=object)
    declared = {"population": Number(0, 250_000), "age": whole(18, 70)}
    declared |= {"income": Number(0, 200_000), "statusquo": Number(-2, 2.5)}
    return X, y, schema_of(X, declared, classes=["A", "N", "U", "Y"]), 1215


def cancer(folder):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    ends = {name: float(f"{1.1 * X[name].max():.1g}") for name in X}  # rounded, as a person would
    return X, y.to_numpy(), schema_of(X, {name: Number(0, end) for name, end in ends.items()}), 284


def measure(read, options):
    """Print the majority, the exact model and both laws of noise."""
    X, y, schema, n = read(options.data)
    words = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words), remainder=StandardScaler()
    )
    scores = {}
    for split in range(options.splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, train_size=n, stratify=y, random_state=split
        )
        exact = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(X_train, y_train)
        _, counts = np.unique_counts(y_test)
        scores.setdefault("majority", []).append([counts.max() / len(y_test)])
        scores.setdefault("exact", []).append([exact.score(X_test, y_test)])
        for name, law in (("pure", LaplaceMechanism), ("delta 1e-6", GaussianMechanism)):
            for release in range(options.releases):
                row = []
                for epsilon in EPSILONS:
                    delta = {"delta": 1e-6} if law is GaussianMechanism else {}
                    tables = ClassTables(schema, random_state=release)
                    model = PrivateEstimator(
                        LogisticRegression(), mechanism=law(epsilon, **delta), sensitivity=tables
                    )
                    row.append(model.fit(X_train, y_train).score(X_test, y_test))
                scores.setdefault(name, []).append(row)
    print(f"{read.__name__}: {n} records, {X.shape[1]} columns")
    for name, rows in scores.items():
        means, n_rows = np.mean(rows, axis=0), len(rows)
        error = np.std(rows, axis=0) / max(n_rows - 1, 1) ** 0.5
        print(f"  {name:12}", "/".join(f"{each:.3f}" for each in means), end="")
        print("  (" + "/".join(f"{each:.3f}" for each in error) + ")", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the tables")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="one release of one table")
    options = parser.parse_args()
    if options.small:
        options.splits = options.releases = 1
    readers = [cancer]
    if options.data is not None:
        readers += [adult, rice]
        files = {"HI.csv": insurance, "Fair.csv": affairs}
        files |= {"OFP.csv": elderly, "DoctorAUS.csv": visits}
        files |= {"Housing.csv": housing, "Males.csv": males, "Chile.csv": vote}
        readers += [read for name, read in files.items() if (options.data / name).is_file()]
    for read in readers:
        measure(read, options)


if __name__ == "__main__":
    import warnings

    from skdp import UtilityWarning

    warnings.simplefilter("ignore", UtilityWarning)  # few records are a part of the question
    main()
