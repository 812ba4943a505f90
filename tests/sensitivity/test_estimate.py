"""SensitivityEstimate as a value."""

import dataclasses
import json
import math

import numpy as np
import pytest

from skdp import SensitivityEstimate
from skdp.codes import Geometry
from skdp.sensitivity import order_statistic


def an_estimate(gamma=0.2, calibration="dkw", **changes):
    statistic = order_statistic(gamma, calibration=calibration)
    rng = np.random.default_rng(0)
    norms = rng.exponential(size=statistic.n_pairs)
    values = {
        "norms": norms,
        "order_statistic": statistic,
        "n_samples": 10,
        "geometry": Geometry(1),
        "target": "a function",
        "shape": (3,),
        "oracle": "an oracle",
        "seed": 2**127 + 1,
        "failures": {},
        "key": "a-function-v1",
    }
    return SensitivityEstimate(**values | changes)


def test_json_keeps_every_bit(tmp_path):
    statistic = order_statistic(0.2, calibration="dkw")
    norms = np.random.default_rng(1).lognormal(sigma=30, size=statistic.n_pairs)
    norms[:2] = math.inf
    estimate = an_estimate(norms=norms, failures={"ValueError: no": 2})
    estimate.save(tmp_path / "estimate.json")
    loaded = SensitivityEstimate.load(tmp_path / "estimate.json")
    assert loaded == estimate
    assert loaded.norms.tobytes() == estimate.norms.tobytes()
    assert loaded.seed == estimate.seed
    json.loads((tmp_path / "estimate.json").read_text(), parse_constant=pytest.fail)


def test_estimate_is_frozen():
    estimate = an_estimate()
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 0.0
    with pytest.raises(ValueError, match="read-only"):
        estimate.norms[0] = 0.0


def test_estimate_differs_from_other_values():
    assert an_estimate() != an_estimate(n_samples=11)
    assert an_estimate() != an_estimate(key="a-function-v2")
    assert an_estimate() != "an estimate"
    assert len(repr(an_estimate())) < 250


def test_norms_are_as_many_as_pairs():
    with pytest.raises(ValueError, match="one value for each of the 61 pairs"):
        an_estimate(norms=np.ones(3))
