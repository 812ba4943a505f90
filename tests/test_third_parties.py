"""Parts made outside of the package, as docs/development.md has them, work wherever ours do."""

import importlib
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import LaplaceMechanism, Mechanism, PrivateEstimator, SensitivitySampler
from skdp.audit import audit_estimator, audit_release

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "development.md").read_text()
FENCE = re.compile(r"^```python\n# (\w+)\.py\n(.*?)^```$", re.M | re.S)
EXAMPLES = dict(FENCE.findall(PAGE))
N = 60


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """The examples as modules, in a folder from which they can be imported."""
    folder = tmp_path_factory.mktemp("third_parties")
    for name, code in EXAMPLES.items():
        (folder / f"{name}.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder
    for name in EXAMPLES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def parts(folder):
    """The four parts, by their names."""
    return {
        name: getattr(importlib.import_module(module), name)
        for module, name in [
            ("grid_mechanism", "GridMechanism"),
            ("applicants", "Applicants"),
            ("trimmed_means", "TrimmedMeans"),
            ("slopes", "Slopes"),
        ]
    }


@pytest.fixture(scope="module")
def data(parts):
    return parts["Applicants"]()(N, np.random.default_rng(1))


def column_slopes(X, y):
    return X.T @ y / (X**2).sum(axis=0)


def sampler(parts, **options):
    return SensitivitySampler(parts["Applicants"](), gamma=0.2, random_state=0, **options)


def private(parts, part, **options):
    """Return an estimator in which the part called `part` is one of the third parties'."""
    estimator, release, mechanism = {
        "mechanism": (RidgeClassifier(), "auto", parts["GridMechanism"](1.0)),
        "oracle": (RidgeClassifier(), "auto", LaplaceMechanism(1.0)),
        "target": (StandardScaler(with_std=False), parts["TrimmedMeans"](), LaplaceMechanism(1.0)),
        "estimator": (parts["Slopes"](), "auto", LaplaceMechanism(1.0)),
        "all": (parts["Slopes"](), parts["TrimmedMeans"](), parts["GridMechanism"](1.0)),
    }[part]
    known = {"sensitivity": sampler(parts), "random_state": 0} | options
    return PrivateEstimator(estimator, mechanism=mechanism, release=release, **known)


def released_numbers(model):
    names = ["coef_", "intercept_", "mean_"]
    return [getattr(model, name) for name in names if hasattr(model, name)]


PARTS = ["mechanism", "oracle", "target", "estimator", "all"]


@pytest.fixture(scope="module")
def fitted(parts, data):
    """A fit with each part."""
    return {part: private(parts, part).fit(*data) for part in PARTS}


def test_the_page_has_four_examples_of_at_most_20_lines_of_code():
    assert list(EXAMPLES) == ["grid_mechanism", "applicants", "trimmed_means", "slopes"]
    assert max(len(re.findall(r"^.+$", code, re.M)) for code in EXAMPLES.values()) <= 20


@pytest.mark.parametrize("part", PARTS)
def test_private_estimator(fitted, data, part):
    model = fitted[part]
    assert model.guarantee_.gamma == 0.2
    assert "Applicants(mean_income=2.0)" in str(model.guarantee_)
    exact = model.plan_.target.restore(model.plan_.target(*data, seed=0))
    noisy = released_numbers(model.estimator_)
    assert noisy
    for value, other in zip(noisy, released_numbers(exact), strict=True):
        assert np.all(value != other)
    assert clone(model).fit(*data).guarantee_ == model.guarantee_


def test_release(parts, data):
    options = {"mechanism": parts["GridMechanism"](1.0), "sensitivity": sampler(parts)}
    released = skdp.release(parts["TrimmedMeans"](), *data, **options, random_state=0)
    assert isinstance(released.value, StandardScaler)
    assert released.value.transform(data[0]).shape == (N, 2)
    slopes = skdp.release(column_slopes, *data, **options, random_state=0)
    steps = slopes.value * 2.0**20
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.all(slopes.value != parts["Slopes"]().fit(*data).coef_)


@pytest.mark.parametrize("part", PARTS)
def test_audit(fitted, data, part):
    """Of three pairs, the room for gamma = .2 is not exceeded by so many that it could be seen."""
    audit = audit_estimator(
        fitted[part], *data, pairs=3, stacked=True, n_search=100, n_final=300, alpha=1e-3, rng=0
    )
    assert audit.covered
    assert not audit.violated
    assert np.isfinite(audit.lower_bounds).all()


def test_an_audit_of_the_mechanism_finds_twice_the_change_and_not_the_promised_one(parts):
    """With alpha = 1e-9 the second bound is above the claim by chance as often as that."""
    mechanism = parts["GridMechanism"](1.0)
    found, silent = (
        audit_release([0.0, 0.0], [0.0, change], mechanism, 1.0, stacked=True, alpha=1e-9, rng=0)
        for change in (2.0, 1.0)
    )
    assert found.violated
    assert not silent.violated


@pytest.mark.slow
def test_another_process_executes_plans_and_takes_estimates_and_models(fitted, data, folder):
    (folder / "fitted.pkl").write_bytes(pickle.dumps((fitted, data)))
    script = """
        import pickle, sys
        from pathlib import Path
        from sklearn.base import clone
        folder = Path(sys.argv[1])
        fitted, data = pickle.loads((folder / "fitted.pkl").read_bytes())
        releases = {}
        for part, model in fitted.items():
            planned = model.plan_.execute(*data, random_state=0)
            again = clone(model).set_params(sensitivity=model.sensitivity_)
            if part in ("mechanism", "oracle"):
                again.set_params(classes=[0, 1])
            releases[part] = planned.value, again.fit(*data).estimator_, model.estimator_
        (folder / "releases.pkl").write_bytes(pickle.dumps(releases))
    """
    subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore:With this release the budget",
            "-c",
            textwrap.dedent(script),
            folder,
        ],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])},
    )
    releases = pickle.loads((folder / "releases.pkl").read_bytes())
    for part, models in releases.items():
        expected = np.hstack([*map(np.ravel, released_numbers(fitted[part].estimator_))])
        for model in models:
            numbers = np.hstack([*map(np.ravel, released_numbers(model))])
            np.testing.assert_array_equal(numbers, expected)


def test_an_estimate_belongs_to_the_part_that_it_was_made_with(parts, data):
    known = private(parts, "all").plan(N, like=data).sensitivity
    other = private(parts, "all", sensitivity=known)
    other.release = parts["TrimmedMeans"](share=0.2)
    with pytest.raises(ValueError, match="was made for another target"):
        other.fit(*data)


def test_the_example_refuses_too_fine_a_grid_before_private_data_are_read(parts, data, monkeypatch):
    monkeypatch.setattr("skdp.plan.evaluate_privately", None)
    model = private(parts, "mechanism")
    model.mechanism.bits = 60
    with pytest.raises(ValueError, match="The 'bits' of GridMechanism are too many"):
        model.fit(*data)


class FloatingPoint(Mechanism):
    """The mistake of drawing from what only a seeded source has."""

    geometry = skdp.codes.Geometry(1)

    def release(self, value, sensitivity, rng):
        return value + rng.laplace(0, sensitivity, size=value.shape)

    def guarantee(self, gamma=0.0):
        return skdp.PrivacyGuarantee(epsilon=1.0, gamma=gamma)


@pytest.mark.parametrize("seed", [None, 0])
def test_noise_from_anything_but_bytes_is_refused_before_private_data_are_read(parts, data, seed):
    seen = []

    def slopes(X, y):
        seen.append(X is data[0] or np.array_equal(X, data[0]))
        return column_slopes(X, y)

    with pytest.raises(AttributeError, match="no attribute 'laplace'"):
        skdp.release(
            skdp.FunctionTarget(slopes, key="slopes"),
            *data,
            mechanism=FloatingPoint(),
            sensitivity=sampler(parts),
            random_state=seed,
        )
    assert seen
    assert not any(seen)
