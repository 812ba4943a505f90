"""The search for large sensitivities: known maxima are found, and never exceeded."""

import numpy as np
import pandas as pd
import pytest

from skdp import LaplaceMechanism, PublicDataOracle, SensitivitySampler, UniformOracle
from skdp.audit import find_large_sensitivity

BOX = UniformOracle([(0, 1), (0, 2)])


def mean(X):
    return X.mean(axis=0)


def test_known_maximum_is_nearly_found_and_not_exceeded():
    # L1 norm of the change of a mean over [0, 1] x [0, 2] with n = 10: at most .3.
    norms = [
        find_large_sensitivity(mean, BOX, 10, 200, random_state=seed).norm for seed in range(5)
    ]
    assert max(norms) <= 0.3
    assert min(norms) > 0.29
    # Drawing pairs alone stays below: of a thousand seeds none reached it with 200 pairs.
    sampler = SensitivitySampler(BOX, gamma=None, n_pairs=200, random_state=0)
    assert sampler.sample(mean, 10, LaplaceMechanism(1.0).geometry).norms.max() < 0.29


def test_the_pair_that_is_reported_has_the_norm_that_is_reported():
    found = find_large_sensitivity(mean, BOX, 10, 60, random_state=0)
    first, second = (dataset.X for dataset in found.pair)
    assert np.abs(mean(first) - mean(second)).sum() == pytest.approx(found.norm)
    ((place,),) = np.nonzero((first != second).any(axis=1))
    assert found.n_pairs == 60
    for one, many in ((found.record, first), (found.other, second)):
        np.testing.assert_array_equal(one.X, many[[place]])


@pytest.mark.parametrize("n_samples", [1, 5])
def test_containers_that_are_no_arrays_are_searched_record_by_record(n_samples):
    frame = pd.DataFrame({"a": np.arange(20.0), "b": 1.0})
    oracle = PublicDataOracle(frame, pd.Series(np.arange(20.0)))
    found = find_large_sensitivity(
        lambda X, y: X["a"].mean() + y.mean(), oracle, n_samples, 150, random_state=0
    )
    assert found.norm == pytest.approx(38 / n_samples)
    assert list(found.record[0].columns) == ["a", "b"]


def test_pairs_without_a_value_are_passed_over():
    def fragile(X):
        if X[0, 0] < 0.5:
            raise ValueError("no")
        return np.nan if X[0, 1] < 0.2 else X.mean()

    found, again = (find_large_sensitivity(fragile, BOX, 5, 100, random_state=0) for _ in range(2))
    assert found.norm > 0
    assert again.norm == found.norm
    far = find_large_sensitivity(
        lambda X: 1.7e308 * np.sign(X[0, 0] - 0.5), BOX, 1, 50, random_state=0
    )
    assert np.isfinite(far.norm)  # of a pair that no overflow hides
    for call, word in (((lambda X: 1 / 0, BOX, 5, 20), "all of 20"), ((mean, BOX, 0, 5), "n_samp")):
        with pytest.raises(ValueError, match=word):
            find_large_sensitivity(*call, random_state=0)
