"""Parts made outside of the package, as docs/development.md has them, work wherever ours do."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import LaplaceMechanism, Mechanism
from skdp.accounting import PrivacyAccountant
from skdp.audit import audit_estimator, audit_release
from tests import helpers

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
    names = {
        "grid_mechanism": "GridMechanism",
        "applicants": "Applicants",
        "trimmed_means": "TrimmedMeans",
        "slopes": "Slopes",
    }
    return {name: getattr(importlib.import_module(module), name) for module, name in names.items()}


@pytest.fixture(scope="module")
def data(parts):
    return parts["Applicants"]()(N, np.random.default_rng(1))


def column_slopes(X, y):
    return X.T @ y / (X**2).sum(axis=0)


def sampler(parts):
    return helpers.sampler(parts["Applicants"](), n_pairs=None)


def private(parts, part):
    """Return an estimator in which the part called `part` is one of the third parties'."""
    estimator, release, mechanism = {
        "mechanism": (RidgeClassifier(), "auto", parts["GridMechanism"](1.0)),
        "oracle": (RidgeClassifier(), "auto", LaplaceMechanism(1.0)),
        "target": (StandardScaler(with_std=False), parts["TrimmedMeans"](), LaplaceMechanism(1.0)),
        "estimator": (parts["Slopes"](), "auto", LaplaceMechanism(1.0)),
        "all": (parts["Slopes"](), parts["TrimmedMeans"](), parts["GridMechanism"](1.0)),
    }[part]
    options = {"mechanism": mechanism, "release": release}
    return helpers.private(estimator, sensitivity=sampler(parts), **options)


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


def test_the_example_refuses_too_fine_a_grid_before_private_data_are_read(parts, data):
    model = private(parts, "mechanism")
    model.mechanism.bits = 60
    model.accountant = PrivacyAccountant(":memory:", epsilon=10.0)
    with pytest.raises(ValueError, match="'bits' of GridMechanism"):
        model.fit(*data)
    assert model.accountant.total().n_releases == 0


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
        seen.append(np.array_equal(X, data[0]))
        return column_slopes(X, y)

    options = {"mechanism": FloatingPoint(), "sensitivity": sampler(parts), "random_state": seed}
    with pytest.raises(AttributeError, match="no attribute 'laplace'"):
        skdp.release(skdp.FunctionTarget(slopes, key="slopes"), *data, **options)
    assert seen
    assert not any(seen)
