"""Counts and means of declared columns: exact sums, proved bounds, refusals before payment."""

from fractions import Fraction
from math import fsum

import numpy as np
import pandas as pd
import pytest

from skdp import (
    Category,
    CountTarget,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    MeanTarget,
    Number,
    SampleAndAggregate,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import count_bound, mean_bound

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame(
    {
        "age": RNG.integers(15, 95, N).astype(float),
        "district": RNG.choice(["north", "south", "nowhere"], N),
        "amount": RNG.lognormal(3, 2, N),
    }
)
TABLE = CountTarget({"district": Category(["south", "north"]), "age": Number(20, 80)}, n_cells=3)


def released(target, bound, X=X, epsilon=1.0, **options):
    budget = PrivacyAccountant(":memory:", epsilon=np.inf, delta=0.1)
    options = {"mechanism": LaplaceMechanism(epsilon), "random_state": 0} | options
    return release(target, X, sensitivity=bound, accountant=budget, **options)


def test_counts_without_noise_are_those_of_pandas():
    ages = pd.cut(X["age"].clip(20, 80), [20, 40, 60, 81], right=False, labels=False)
    expected = pd.crosstab(X["district"] == "north", ages)
    exact = released(TABLE, count_bound(N), epsilon=np.inf).value
    np.testing.assert_array_equal(exact, expected)
    for mechanism in (LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-4)):
        noisy = released(TABLE, count_bound(N), mechanism=mechanism)
        assert (noisy.value != exact).all()
        assert noisy.standard_errors.shape == exact.shape
    assert "south, 20 to 40" in str(noisy.summary())
    array = X[["age"]].to_numpy()
    ages = released(CountTarget({"age": Number(20, 80)}, 3), count_bound(N), array, np.inf).value
    np.testing.assert_array_equal(ages, expected.sum())


def test_means_without_noise_are_exact_to_a_step_in_any_order():
    bound = mean_bound(N, ranges=[(10, 50), (18, 65)])
    exact, reordered = (
        released(MeanTarget(["amount", "age"]), bound, rows, np.inf).value
        for rows in (X, X[::-1].sample(frac=1, random_state=0))
    )
    assert exact.tobytes() == reordered.tobytes()
    expected = [fsum(X["amount"].clip(10, 50)) / N, fsum(X["age"].clip(18, 65)) / N]
    np.testing.assert_allclose(exact, expected, rtol=1e-12)
    gaps = pd.DataFrame({"amount": [np.nan, None, np.inf, -np.inf]})
    found = released(MeanTarget(["amount"]), mean_bound(4, ranges=(2, 6)), gaps, np.inf).value
    assert found == [(2 + 2 + 6 + 2) / 4]


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3e5, 7e-9), (1e15, 1e15 + 3), (0.1, 0.1)])
@pytest.mark.filterwarnings("ignore:The 'ranges' of mean_bound are so narrow")  # one of the cases
def test_a_replaced_record_moves_a_mean_by_no_more_than_its_bound(ends):
    """It comes within a millionth of the bound, less its rounding."""
    low, high = ends
    rows = np.random.default_rng(1).uniform(low, high, (50, 1))
    bound = mean_bound(50, ranges=ends)
    target, known = MeanTarget(["a"]).proved(bound)
    moved = []
    for others in (rows, np.full_like(rows, low), np.full_like(rows, high)):
        values = []
        for last in (low, high, (low + high) / 2):
            others[-1] = last
            values.append(Fraction(*target(others, seed=0)[0].as_integer_ratio()))
        moved.append(max(values) - min(values))
    assert max(moved) <= Fraction(bound.value)
    rounding = 70 * 2.0**-52 * max(abs(low), abs(high))
    assert float(max(moved)) >= (1 - 1e-6) * (high - low) / 50 - rounding
    assert known.value == bound.value


def test_a_bound_serves_its_own_target_again():
    first = released(TABLE, count_bound(N))
    again = released(TABLE, first.sensitivity)
    np.testing.assert_array_equal(first.value, again.value)
    with pytest.raises(ValueError, match="derived for another target"):
        released(lambda X: np.ones((2, 3)), first.sensitivity)
    with pytest.raises(TypeError, match="must be a bound of skdp"):
        released(CountTarget({"age": Number(0, 1)}), first.sensitivity)


def test_a_table_by_district_counts_persons_where_there_are_groups():
    persons = pd.concat([X] * 2, ignore_index=True).assign(id=np.tile(np.arange(N), 2))
    found = released(TABLE, count_bound(N), persons, epsilon=18.0, groups="id")
    assert found.guarantee.unit == "person"
    np.testing.assert_array_equal(
        found.value.round(), released(TABLE, count_bound(N), X, 18.0).value.round()
    )


def test_the_largest_cell_can_be_chosen():
    target = CountTarget({"age": Number(0, 1)}, n_cells=2)  # all ages are in the second cell
    chosen = released(target, count_bound(N), mechanism=ExponentialMechanism(1.0))
    assert chosen.value == 1


@pytest.mark.loop(
    ("target", "bound", "X", "said"),
    [
        (TABLE, 2.0, X, "must be a bound of skdp.bounds.*Got 2.0"),
        (TABLE, mean_bound(N, ranges=(0, 1)), X, "must be a bound of skdp.bounds"),
        (TABLE, SampleAndAggregate(9), X, "must be a bound of skdp.bounds"),
        (MeanTarget(["age"]), count_bound(N), X, "must be a bound of skdp.bounds"),
        (TABLE, count_bound(N), X.drop(columns="age"), r"Missing or repeated are \['age'\]"),
        (TABLE, count_bound(N + 1), X, f"holds for n_samples={N + 1}. Got {N}"),
        (MeanTarget(["age"]), mean_bound(N, ranges=[(0, 1)] * 2), X, "ranges for 2 column"),
        # by the schema, or where pandas has words as objects by the ranges
        (MeanTarget(["district"]), mean_bound(N, ranges=(0, 1)), X, "cannot hold|numbers only"),
    ],
)
def test_what_does_not_fit_is_refused_before_payment(target, bound, X, said):
    budget = PrivacyAccountant(":memory:", epsilon=1)
    with pytest.raises((TypeError, ValueError), match=said):
        release(target, X, mechanism=LaplaceMechanism(1.0), sensitivity=bound, accountant=budget)
    assert budget.total().epsilon == 0


def test_columns_are_declared_once_and_stand_alone():
    with pytest.raises(ValueError, match="'y' parameter of release must be None"):
        release(TABLE, X, X["age"], mechanism=LaplaceMechanism(1.0), sensitivity=count_bound(N))
    for make, said in (
        (lambda: MeanTarget("age"), "'columns' parameter of MeanTarget must be a list"),
        (lambda: MeanTarget([]), "must hold a column"),
        (lambda: CountTarget({"age": (0, 1)}), "a Number or a Category for 'age'"),
        (lambda: CountTarget({"age": Number(0, 1)}, 0), "'n_cells' parameter of CountTarget"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            make()
