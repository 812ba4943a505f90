"""Pilots before a code is learned from them: rounding, rare changes, and changes to be feared."""

import numpy as np
import pytest

from skdp.codes.pilots import least_changes, with_least_changes, with_rare_changes, without_rounding
from skdp.core.metric import KnownMetric, LocalMetric


def test_what_varies_is_not_said_never_to_change():
    """Of six numbers the last four change rarely, vary by rounding only, are constant, or huge."""
    rng = np.random.default_rng(0)
    values, differences = rng.normal(size=(60, 6)), rng.normal(size=(60, 6))
    values[:, 3] = 1 + 1e-15 * values[:, 3]
    values[:, 4:] = [7, 1e300]
    values[0, 5] = -1e300
    differences[:, 1:] = 0
    differences[4, 2] = 5
    given = differences.copy()
    feared = with_rare_changes(values, differences)
    np.testing.assert_array_equal(differences, given)  # what was given is not written into
    np.testing.assert_array_equal(feared[:, [0, 3, 4, 5]], given[:, [0, 3, 4, 5]])
    assert feared[4, 2] == 5
    for number, count in ((1, 3), (2, 2)):
        assert np.count_nonzero(feared[:, number]) == 3
        assert np.count_nonzero(feared[:, number] == values[:, number].std()) == count
        for fold in range(3):
            assert feared[fold::3, number].any()
    assert not (feared[:, 1:3] == values[:, 1:3].std(axis=0)).all(axis=1).any()
    often = rng.normal(size=(60, 5))
    np.testing.assert_array_equal(with_rare_changes(values[:, :5], often), often)


def test_of_a_function_no_number_changes_less_than_matters_three_percent_of_the_largest_change():
    """Of two outputs in units of their own, one of which is all but 0 at two of three points."""
    changes = np.tile([5.0, 1e-3, 1e-12, 4e-3, 0.0, 2e-3], (40, 1))
    changes[2:, [2, 3, 4]] *= 1e-3
    known = KnownMetric(np.diag([1.0, 1.0, 4.0, 1.0, 1.0, 1.0]), n_outputs=2)
    least = least_changes(changes, known)
    np.testing.assert_allclose(least, [0, 0, 0.15 / 2, 0, 0, 0])
    changes[0, 4] = 1e-300
    least = least_changes(changes, known)
    np.testing.assert_allclose(least, [0, 0, 0.15 / 2, 0, 0.15, 0])
    feared = with_least_changes(changes, least)
    np.testing.assert_array_equal(feared[:, least == 0], changes[:, least == 0])
    np.testing.assert_allclose(np.abs(feared).mean(axis=0)[[2, 4]], [0.075, 0.15])
    assert -20 < np.sign(feared[:, [2, 4]]).prod(axis=1).sum() < 20  # not together
    for plain in (None, known.matrix, LocalMetric(known.matrix)):
        assert not least_changes(changes, plain).any()


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e12, 1e150, 1e-150])
@pytest.mark.parametrize("diagonal", [True, False])
def test_rounding_is_what_no_output_heeds_and_the_last_bits_change_as_the_records_do(
    unit, diagonal
):
    """Beside a number of use, in units of anything."""
    kinds = {  # center, spread, how the output heeds it, how far it is shaken by the last bits
        "useful": (1.0, 0.1, 1.0, 1e-14),
        "useful to another output, in a unit": (unit, 0.1 * unit, 0.1 / max(unit, 1), 1e-12 * unit),
        "a fill where no record has gaps": (3.0, 0.1, 0.0, 1e-15),
        "a fill of a column in a unit": (1e-8 * unit, 1e-9 * unit, 0.0, 1e-20 * unit),
        "a fill that varies little": (1e-3, 2e-11, 0.0, 1e-17),
        "a median that one pair changes": (3.0, 0.0, 0.0, 0.0),
        "a time in seconds": (1.7e9, 60.0, 0.0, 1e-3),
        "what a solver leaves open, and is heeded": (1.0, 0.1, 1e-3, 0.1),
        "rounding of 0": (1e-15, 1e-14, 1.0, 1e-14),
        "rounding of 0, in a unit": (0.0, 1e-14 * unit, 1 / unit, 4e-14 * unit),
        "rounding of a number": (0.1, 1e-16, 0.0, 3e-16),
        "rounding in single precision": (0.1, 1e-8, 1.0, 3e-8),
    }
    rng = np.random.default_rng(0)
    center, spread, heeds, by_rounding = np.array(list(kinds.values())).T
    values = center + spread * rng.normal(size=(40, len(kinds)))
    differences = spread * rng.normal(size=(40, len(kinds))) / 50
    differences[0, list(kinds).index("a median that one pair changes")] = 1.0
    shaken = values[:5] + by_rounding * rng.normal(size=(5, len(kinds)))
    with np.errstate(all="ignore"):  # huge heeds are squared
        metric = heeds**2 if diagonal else np.outer(heeds, heeds)

    def evaluate():
        return values[:5], shaken

    for each in (LocalMetric(metric), metric):
        plain, plain_differences = without_rounding(values, differences, each, evaluate)
        for place, kind in enumerate(kinds):
            if kind.startswith("rounding"):
                assert (plain[:, place] == plain[0, place]).all(), kind
                np.testing.assert_allclose(plain[0, place], center[place], atol=6 * spread[place])
                assert not plain_differences[:, place].any()
            else:
                np.testing.assert_array_equal(plain[:, place], values[:, place], err_msg=kind)
                np.testing.assert_array_equal(plain_differences[:, place], differences[:, place])
    for each in (None, KnownMetric(metric), 0 * metric):
        for same, before in zip(
            without_rounding(values, differences, each, evaluate),
            (values, differences),
            strict=True,
        ):
            np.testing.assert_array_equal(same, before)
