"""Class tables of a table that an engine holds, beside the same counts written by hand.

A folder of Parquet files of 14 columns and a label is made. Each job runs in a process of its own:
the counts of 16 cells of each number and 5 of each category by label, by hand and by skdp, then
a fit with and without the corrected score. It prints seconds, seconds of processors, their ratio to
those of the counts by hand, and the peak memory in MiB beside that of the imports alone. Dask has
two workers, each with a limit of half the size of the table in memory: the memory is that of the
larger of all processes. Of Spark, a process of Java, neither is known.

Usage: python benchmarks/engines.py [--rows 100000 ...] [--engines polars duckdb ...] [--small]
"""

import argparse
import hashlib
import importlib.util
import json
import pickle
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression

from skdp import Category, ClassTables, LaplaceMechanism, Number, PrivateEstimator, Schema
from skdp.accounting import PrivacyAccountant
from skdp.tables.engines import engine_table

ENGINES = {"polars": "polars", "duckdb": "duckdb", "dask": "dask", "ibis": "ibis"}
ENGINES["spark"] = "pyspark"
JOBS = "by hand", "counts", "fit to tables", "fit with a corrected score"
N_CELLS, PART = 16, 1_000_000
WORDS = ["a", "b", "c", "d", "e"]
NUMBERS = {f"x{i}": (0, 100) for i in range(10)}
COLUMNS = {name: Number(*ends) for name, ends in NUMBERS.items()}
COLUMNS |= {f"w{i}": Category(WORDS) for i in range(4)}
SCHEMA = Schema(COLUMNS, classes=["no", "yes"])


def write(folder, n_rows):
    """Write the table in files of at most a million rows."""
    for number, start in enumerate(range(0, n_rows, PART)):
        rng, n = np.random.default_rng(number), min(PART, n_rows - start)
        y = rng.random(n) < 0.3
        made = {name: np.abs(rng.normal(40 + i * y, 20)) for i, name in enumerate(NUMBERS)}
        made |= {f"w{i}": np.array(WORDS)[rng.integers(i * y, 5)] for i in range(4)}
        made["y"] = np.array(["no", "yes"])[y.astype(int)]
        pl.DataFrame(made).write_parquet(folder / f"{number}.parquet")


@contextmanager
def opened(engine, folder, n_rows):
    """Open the folder on an engine."""
    if engine == "dask":
        import dask.dataframe
        from dask.distributed import Client, LocalCluster

        size = {"n_workers": 2, "threads_per_worker": 1}
        size["memory_limit"] = max(n_rows * 15 * 8 // 2, 2**29)
        with LocalCluster(**size, dashboard_address=None) as cluster, Client(cluster):
            yield dask.dataframe.read_parquet(f"{folder}/*.parquet")
    else:
        yield opened_here(engine, folder)


def opened_here(engine, folder):
    """Open the folder on an engine in this process, or on Spark."""
    files = f"{folder}/*.parquet"
    if engine == "polars":
        return pl.scan_parquet(files)
    if engine == "duckdb":
        import duckdb

        duckdb.sql("SET memory_limit = '700MB'")
        return duckdb.read_parquet(files)
    if engine == "ibis":
        import ibis

        return ibis.duckdb.connect().read_parquet(files)
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[2]").getOrCreate().read.parquet(files)


def by_hand(engine, table):
    """Count by the shortest statements of the engine, by arithmetic and without care for gaps."""
    if engine == "polars":
        cell = {name: (pl.col(name) * (N_CELLS / 100)).floor().clip(0, 15) for name in NUMBERS}
        cell |= {name: pl.col(name) for name in COLUMNS.keys() - NUMBERS.keys()}
        asked = [table.group_by(each.alias("cell"), "y").len() for each in cell.values()]
        return pl.collect_all(asked)
    if engine == "dask":
        cut = {name: (table[name] * (N_CELLS / 100)).clip(0, 15).astype(int) for name in NUMBERS}
        made = table.assign(**cut)
        import dask

        return dask.compute(*(made.groupby([name, "y"]).size() for name in COLUMNS))
    cell = {name: f"least(greatest(floor({name} * 0.16), 0), 15)" for name in NUMBERS}
    cell |= {name: name for name in COLUMNS.keys() - NUMBERS.keys()}
    source = {"duckdb": "folder", "ibis": "folder", "spark": "folder"}[engine]
    parts = [
        f"SELECT '{name}', CAST({each} AS VARCHAR(9)), y, count(*) FROM {source} GROUP BY 1, 2, 3"
        for name, each in cell.items()
    ]
    statement = " UNION ALL ".join(parts)
    if engine == "duckdb":
        return table.query("folder", statement).fetchall()
    if engine == "ibis":
        table = table.alias("folder")
        return table.sql(statement.replace("VARCHAR(9)", "VARCHAR"), dialect="duckdb").to_pyarrow()
    table.createOrReplaceTempView("folder")
    return table.sparkSession.sql(statement.replace("VARCHAR(9)", "STRING")).collect()


def fitted(table, n_rows, recalibrate):
    """Return the model of a fit."""
    return PrivateEstimator(
        LogisticRegression(),
        mechanism=LaplaceMechanism(epsilon=1.0),
        sensitivity=ClassTables(SCHEMA, recalibrate, n_samples=n_rows, random_state=0),
        accountant=PrivacyAccountant(":memory:", epsilon=2),
        random_state=0,
    ).fit(table, "y")


def used():
    """Return seconds, seconds of processors, and the peak memory in MiB, of ended children too."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processors = sum(each.ru_utime + each.ru_stime for each in both)
    return time.perf_counter(), processors, max(each.ru_maxrss for each in both) / 1024


def measure(engine, job, folder, n_rows):
    """Return seconds twice, peak memory, that before, and a digest of what was released."""
    if job == "write":
        return write(Path(folder), n_rows)
    start, spent, before = used()
    released = ""
    with opened(engine, folder, n_rows) as table:
        start = time.perf_counter()
        if job == "by hand":
            by_hand(engine, table)
        elif job == "counts":
            sizes = [each.n_cells(N_CELLS) for each in COLUMNS.values()]
            engine_table(table, "y", SCHEMA, n_rows).counts(sizes, 4, N_CELLS)
        else:
            oracle = fitted(table, n_rows, job == JOBS[-1]).oracle_
            kept = pickle.dumps([oracle.tables_, oracle.weights_])
            released = hashlib.sha256(kept).hexdigest()[:8]
        seconds = time.perf_counter() - start
    _, after, peak = used()
    return seconds, after - spent, peak, before, released


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=[*ENGINES])
    parser.add_argument(
        "--small", action="store_true", help="20,000 rows, polars and DuckDB, all in this process"
    )
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        engine, job, folder, n_rows = options.one
        print(json.dumps(measure(engine, job, folder, int(n_rows))))
        return
    run = in_process
    if options.small:
        options.rows, options.engines, run = [20_000], ["polars", "duckdb"], measure
    there = [each for each in options.engines if importlib.util.find_spec(ENGINES[each])]
    for n_rows in options.rows:
        with TemporaryDirectory() as name:
            run("", "write", name, n_rows)  # whose memory a child would inherit
            size = sum(each.stat().st_size for each in Path(name).iterdir()) / 2**20
            print(f"\n{n_rows} rows, {size:.0f} MiB of Parquet", flush=True)
            for engine in there:
                report(run, engine, name, n_rows)


def in_process(*job):
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--one", *map(str, job)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(run, engine, folder, n_rows):
    """Print a line for each job of an engine."""
    hand = np.nan
    for job in JOBS:
        seconds, spent, peak, before, released = run(engine, job, folder, n_rows)
        hand = spent if job == "by hand" else hand
        told = f"{seconds:8.2f} s {spent:8.2f} s {spent / hand:6.2f} {peak:6.0f}/{before:.0f} MiB"
        print(f"{engine:8} {job:28}{told} {released}", flush=True)


if __name__ == "__main__":
    main()
