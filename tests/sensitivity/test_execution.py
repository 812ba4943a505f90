"""Where and when pairs are evaluated: never what they are."""

import joblib
import numpy as np
import pytest
from scipy import sparse

from skdp import PublicDataOracle, SensitivitySampler, UniformOracle
from skdp.core import identity
from skdp.core.geometry import Geometry
from skdp.functions import AdditiveTarget
from skdp.sensitivity import execution
from skdp.sensitivity.store import STORE
from tests.helpers import diagonal_code


def exponential(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))


exponential.__skdp_key__ = "exponential-v1"


@pytest.mark.slow
def test_cache_answers_for_the_same_run_only(tmp_path):
    log = tmp_path / "log"

    def sample(oracle=exponential, n_samples=5, geometry="l1", seed=0, power=1):
        def mean(X):
            with log.open("a") as file:
                file.write("x")
            return (X**power).mean()

        mean.__skdp_key__ = f"mean of power {power}"
        log.write_text("")
        sampler = SensitivitySampler(
            oracle, gamma=None, n_pairs=20, random_state=seed, memory=tmp_path / "cache"
        )
        return sampler.sample(mean, n_samples, geometry).norms, log.stat().st_size

    first, n_calls = sample()
    again, n_calls_again = sample()
    np.testing.assert_array_equal(again, first)
    assert (n_calls, n_calls_again) == (40, 0)
    others = [
        {"n_samples": 6},
        {"seed": 1},
        {"power": 2},
        {"geometry": Geometry(1, diagonal_code([2.0]))},
        {"oracle": UniformOracle([(0, 1)])},
        {"oracle": UniformOracle([(0, 2)])},
    ]
    for options in others:
        norms, n_calls = sample(**options)
        assert n_calls == 40
        assert not np.array_equal(norms, first)


@pytest.fixture
def long_job(monkeypatch):
    """Start workers whatever the job takes."""
    monkeypatch.setattr(execution, "STARTUP", 0.0)


def test_short_jobs_start_no_workers(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("workers were started")

    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05, n_jobs=2, random_state=0)
    monkeypatch.setattr(execution, "Parallel", refuse)
    sampler.sample(np.mean, 10, "l1")
    STORE.clear()
    monkeypatch.setattr(execution, "STARTUP", 0.0)
    with pytest.raises(AssertionError, match="workers were started"):
        sampler.sample(np.mean, 10, "l1")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (identity, "__version__"),
        (identity, "REVISION"),
        (identity.sklearn, "__version__"),
    ],
)
def test_other_version_finds_no_chunk(tmp_path, monkeypatch, module, name):
    """An upgrade may change fits: of scikit-learn, or our own."""
    log = tmp_path / "log"

    def mean(X):
        with log.open("a") as file:
            file.write("x")
        return X.mean()

    mean.__skdp_key__ = "mean-v1"
    sampler = SensitivitySampler(
        exponential, gamma=None, n_pairs=20, random_state=0, memory=tmp_path
    )
    for version, n_calls in [("1", 40), ("2", 80), ("1", 80)]:
        monkeypatch.setattr(module, name, version)
        sampler.sample(mean, 5, "l1")
        assert log.stat().st_size == n_calls


@pytest.mark.parametrize(
    ("target", "n_pairs", "n_chunks"),
    [(np.mean, 19, 19), (np.mean, 199, 52), (np.mean, 639, 66), (AdditiveTarget(np.abs), 199, 0)],
)
def test_few_refits_make_many_chunks(tmp_path, target, n_pairs, n_chunks):
    """Enough to busy 32 workers, and to lose little; pairs of two records are not kept."""
    oracle = UniformOracle([(0, 1)])
    sampler = SensitivitySampler(
        oracle, gamma=None, n_pairs=n_pairs, random_state=0, memory=tmp_path
    )
    norms = sampler.sample(target, 5, "l1").norms
    assert len(list(tmp_path.rglob("output.pkl"))) == n_chunks
    uncut = sampler.set_params(memory=None).sample(target, 5, "l1").norms
    np.testing.assert_array_equal(norms, uncut)


def in_memory(records):
    return records


def as_frame(records):
    return pytest.importorskip("pandas", reason="needs the 'dataframe' extra").DataFrame(
        records, columns=["a", "b"]
    )


TABLES = {
    "array": (in_memory, np.asarray),
    "columns": (np.asfortranarray, np.asarray),
    "frame": (as_frame, lambda frame: frame.to_numpy()),
    "sparse": (sparse.csr_array, lambda matrix: matrix.data),
}


@pytest.mark.parametrize("kind", TABLES)
def test_large_tables_are_mapped_not_copied(long_job, tmp_path, kind):
    """Every task on every worker sees the same file, and only the parent has a copy."""
    make, data_of = TABLES[kind]
    oracle = PublicDataOracle(make(np.random.default_rng(0).normal(size=(150_000, 2))))  # 2.4 MB
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=120, n_jobs=2, random_state=0)
    log = tmp_path / "log"
    log.touch()

    def mapped(X):
        base = data_of(oracle._X)
        while base is not None and not isinstance(base, np.memmap):
            base = getattr(base, "base", None)
        if base is None:
            raise RuntimeError("a copy")
        with log.open("a") as file:
            file.write(f"{base.filename}\n")
        return np.asarray(X.sum())

    estimate = sampler.sample(mapped, 5, "l1")
    assert estimate.failures == {"RuntimeError: a copy": 2}  # which are timed in this process
    assert len(set(log.read_text().splitlines())) == 1
    alone = sampler.set_params(n_jobs=1).sample(mapped, 5, "l1")
    assert alone.failures == {"RuntimeError: a copy": 120}  # the check sees a difference


def test_memory_must_be_one(tmp_path):
    sampler = SensitivitySampler(exponential, gamma=0.2, random_state=0, memory=3)
    with pytest.raises(TypeError, match="a path or a joblib"):
        sampler.sample(np.mean, 4, "l1")
    expected = sampler.set_params(memory=None).sample(np.mean, 4, "l1")
    memory = joblib.Memory(tmp_path, verbose=0)
    assert sampler.set_params(memory=memory).sample(np.mean, 4, "l1") == expected
