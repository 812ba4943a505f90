"""Public bases: the maps, what is learned, and the promise that holds in each of them."""

import json
import math
import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy.linalg import qr
from sklearn.base import clone

from skdp.codes.learning import (
    LEARNERS,
    folds,
    learn_basis,
    least_changes,
    with_learned_basis,
    with_least_changes,
    with_rare_changes,
    without_rounding,
)
from skdp.core.code import PublicCode
from skdp.core.geometry import Geometry
from skdp.core.metric import KnownMetric, LocalMetric
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.lattice import lattice_metric
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.laplace import LaplaceMechanism, laplace_scale
from skdp.mechanisms.noise import byte_source
from skdp.sensitivity.base import in_basis_of


def orthogonal(d, seed=0):
    return qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def matrix_of_condition(condition, d=12):
    return orthogonal(d) * np.geomspace(1, 1 / condition, d) @ orthogonal(d, seed=1)


def uneven(n, d, least=0.01, seed=0):
    """Differences whose coordinates have different sizes."""
    return np.random.default_rng(seed).laplace(size=(n, d)) * np.geomspace(1, least, d)


def correlated(n, d):
    """Differences that are large along few directions."""
    return uneven(n, d) @ orthogonal(d, seed=9)


def metric_of(d, seed=0):
    features = np.random.default_rng(seed).normal(size=(3 * d, d)) * np.geomspace(1, 0.1, d)
    return features.T @ features / len(features)


DIFFERENCES = correlated(60, 8)
BASES = {
    "identity": PublicCode(),
    "given": PublicCode("given", encoder=matrix_of_condition(1e3, d=8)),
    "diagonal": learn_basis("diagonal", DIFFERENCES, metric_of(8), 1),
    "predictive": learn_basis("predictive", DIFFERENCES, metric_of(8), 1),
}


@pytest.fixture
def low_rank(monkeypatch):
    """A predictive basis of 30 values, as it is made for thousands."""
    monkeypatch.setattr("skdp.codes.learning.MAX_DENSE", 20)
    monkeypatch.setattr("skdp.codes.learning.MAX_RANK", 7)
    return learn_basis("predictive", correlated(40, 30), np.linspace(0.5, 2, 30), 1)


# The map.


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e8])
def test_round_trip_to_working_precision(condition):
    """Errors of a few units in the last place, times the condition number, and no more."""
    T = matrix_of_condition(condition)
    basis = PublicCode("given", encoder=T)
    there_and_back = np.array([basis.decode(basis.forward(e)) for e in np.eye(12)])
    np.testing.assert_allclose(there_and_back, np.eye(12), rtol=0, atol=1e-15 * 12 * condition)
    back_and_there = np.array([basis.forward(basis.decode(e)) for e in np.eye(12)])
    np.testing.assert_allclose(back_and_there, np.eye(12), rtol=0, atol=1e-15 * 12 * condition)
    np.testing.assert_allclose(basis.forward(np.arange(12.0)), T @ np.arange(12.0), atol=1e-13)


@pytest.mark.parametrize("name", BASES)
def test_learned_bases_round_trip(name):
    value = np.random.default_rng(1).normal(size=(2, 4))
    basis = BASES[name]
    np.testing.assert_allclose(basis.decode(basis.forward(value)), value.ravel(), atol=1e-12)


def test_scales_alone_are_not_singular():
    basis = PublicCode("given", encoder=np.diag([1e-150, 1.0, 1e150]))
    np.testing.assert_allclose(basis.decode(basis.forward(np.ones(3))), np.ones(3))


def test_low_rank_basis_is_an_invertible_linear_map(low_rank):
    assert low_rank.reflectors.shape == (30, 7)
    T = np.array([low_rank.forward(e) for e in np.eye(30)]).T
    inverse = np.array([low_rank.decode(e) for e in np.eye(30)]).T
    np.testing.assert_allclose(inverse @ T, np.eye(30), atol=1e-12)
    # Without its diagonals it is a rotation that starts with the leading axes.
    Q = low_rank.weights[:, None] * T / low_rank.encoder
    np.testing.assert_allclose(Q @ Q.T, np.eye(30), atol=1e-12)
    z = correlated(40, 30) / np.abs(correlated(40, 30)).max() * low_rank.encoder
    axes = np.linalg.svd(z)[2][:7]
    np.testing.assert_allclose(np.abs(np.sum(Q[:7] * axes, axis=1)), 1, atol=1e-9)


@pytest.mark.loop(
    ("parts", "message"),
    [
        ({"encoder": np.ones((3, 3))}, "singular"),
        ({"encoder": np.zeros((2, 2))}, "singular"),
        ({"encoder": matrix_of_condition(1e17)}, "singular"),
        ({"encoder": [[1.0, np.nan], [0.0, 1.0]]}, "finite"),
        ({"encoder": [[1.0, 0.0], [0.0, np.inf]]}, "finite"),
        ({"encoder": np.ones((2, 3))}, r"square matrix.*\(2, 3\)"),
        ({"encoder": np.ones((3, 3, 3))}, "fit together"),
        ({"encoder": [1.0, 1.0], "weights": [1.0, 1.0]}, "fit together"),
        ({"encoder": [1.0, 0.0]}, "invertible"),
        ({"weights": [1.0, np.nan]}, "finite"),
        (
            {"encoder": np.ones(3), "reflectors": np.zeros((3, 1)), "weights": np.ones(3)},
            "invertible",
        ),
    ],
)
def test_maps_that_cannot_be_undone_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        PublicCode("given", **parts)


def test_basis_is_a_value(low_rank):
    for basis in [*BASES.values(), low_rank]:
        again = PublicCode.from_dict(json.loads(json.dumps(basis.to_dict(), allow_nan=False)))
        assert again == basis
        assert hash(again) == hash(basis)
        value = np.linspace(-1, 1, 30 if basis is low_rank else 8)
        assert again.forward(value).tobytes() == basis.forward(value).tobytes()
    assert len({basis.digest for basis in BASES.values()}) == len(BASES)
    assert BASES["diagonal"] != BASES["predictive"]
    assert BASES["diagonal"] != "diagonal"
    for basis in (BASES["diagonal"], pickle.loads(pickle.dumps(BASES["diagonal"]))):
        with pytest.raises(ValueError, match="read-only"):
            basis.encoder[0] = 0.0


def test_basis_says_where_it_comes_from():
    assert repr(BASES["predictive"]) == "PublicCode('predictive', n_pilot_pairs=60)"
    assert str(BASES["predictive"]) == "predictive basis learned from 60 pilot pairs"
    assert str(BASES["given"]) == "given basis"
    assert str(PublicCode("identity", 199)) == "identity basis kept after 199 pilot pairs"
    assert str(PublicCode()) == "identity basis"


# What is learned.


def output_error(log_weights, sizes, order):
    """Expected squared error of the output, by weights: the formula that is to be minimized."""
    weights = np.exp(log_weights)
    return np.sum((sizes / weights) ** order) ** (2 / order) * np.sum(weights**2)


@pytest.mark.parametrize("order", [1, 2])
def test_weights_against_numerical_optimization(order):
    differences = uneven(500, 6, least=0.05)
    basis = learn_basis("diagonal", differences, None, order)
    sizes = np.mean(np.abs(differences) ** order, axis=0) ** (1 / order)
    best = optimize.minimize(output_error, np.zeros(6), (sizes, order), tol=1e-12)
    learned = output_error(-np.log(basis.encoder), sizes, order)
    assert learned <= best.fun * (1 + 1e-6)
    # Neither no weights nor the sizes themselves would do.
    assert output_error(np.zeros(6), sizes, order) > 1.2 * learned
    assert output_error(np.log(sizes), sizes, order) > 1.2 * learned


def test_gaussian_covariance_is_the_geometric_mean():
    """The noise covariance is M^-1 # S: the one matrix C > 0 with C M C proportional to S."""
    rng = np.random.default_rng(3)
    differences = rng.normal(size=(20_000, 4)) @ rng.normal(size=(4, 4))
    metric = metric_of(4)
    basis = learn_basis("predictive", differences, metric, order=2)
    inverse = np.array([basis.decode(e) for e in np.eye(4)]).T
    covariance = inverse @ inverse.T
    ratio = covariance @ metric @ covariance @ np.linalg.inv(differences.T @ differences)
    np.testing.assert_allclose(ratio / ratio[0, 0], np.eye(4), atol=0.02)


def test_predictive_basis_turns_the_output_metric_into_its_weights():
    """Unit noise on coordinate j changes the output by w_j^2: T^-T M T^-1 is diagonal."""
    basis, metric = BASES["predictive"], metric_of(8)
    inverse = np.array([basis.decode(e) for e in np.eye(8)]).T
    product = inverse.T @ metric @ inverse
    np.testing.assert_allclose(product, np.diag(np.diag(product)), atol=1e-10 * product.max())


@pytest.mark.parametrize("kind", ["diagonal", "predictive"])
@pytest.mark.parametrize("order", [1, 2])
def test_units_of_the_values_do_not_matter(kind, order):
    """Grams or tons: the released output has the same law."""
    units = np.geomspace(1e-6, 1e6, 8)
    metric = metric_of(8)
    plain = learn_basis(kind, DIFFERENCES, metric, order)
    scaled = learn_basis(kind, DIFFERENCES * units, metric / np.outer(units, units), order)
    value = np.random.default_rng(0).normal(size=8)
    expected, got = np.abs(plain.forward(value)), np.abs(scaled.forward(value * units))
    np.testing.assert_allclose(got / got[0], expected / expected[0], rtol=1e-6)


def fresh_error(basis, differences, metric, order):
    """Squared .95 quantile of the norms, times the output error of unit noise."""
    coordinates = np.array([basis.forward(v) for v in differences])
    inverse = np.array([basis.decode(e) for e in np.eye(len(metric))]).T
    quantile = np.quantile(np.linalg.norm(coordinates, order, axis=1), 0.95)
    return quantile**2 * np.trace(inverse.T @ metric @ inverse)


@pytest.mark.parametrize("order", [1, 2])
def test_auto_takes_about_the_least_error_on_fresh_pairs(order):
    """Correlated changes want a rotation, uneven ones scales, and few pairs of many values none.

    In the first two cases the worst of the three has 1.5 times the error of the best or more.
    """
    plain = np.random.default_rng(0).normal(size=(2006, 100))
    cases = {
        "predictive": (correlated(2100, 10), 100, metric_of(10)),
        "diagonal": (uneven(2025, 40), 25, np.eye(40)),
        "identity": (plain, 6, np.eye(100)),
    }
    for best, (differences, n_pilot_pairs, metric) in cases.items():
        pilots, fresh = differences[:n_pilot_pairs], differences[n_pilot_pairs:]
        errors = {
            kind: fresh_error(learn_basis(kind, pilots, metric, order), fresh, metric, order)
            for kind in [*LEARNERS, "auto"]
        }
        assert errors["auto"] < 1.08 * errors[best]
        assert errors[best] < 1.001 * min(errors.values())
        assert best == "identity" or max(errors.values()) > 1.5 * errors[best]


@pytest.mark.parametrize("order", [1, 2])
def test_axes_of_the_metric_help_where_pairs_are_few(order):
    """Changes along the axes of the metric, as for a linear model: 40 pairs need not find them."""
    rotation = orthogonal(60)
    metric = rotation.T * np.geomspace(1, 0.01, 60) @ rotation
    differences = uneven(1040, 60, least=0.1) @ rotation
    errors = [
        fresh_error(
            learn_basis("predictive", differences[:40], given_metric, order),
            differences[40:],
            metric,
            order,
        )
        for given_metric in (metric, LocalMetric(metric))
    ]
    # What holds for small changes only is not taken for a guide.
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize("kind", ["diagonal", "predictive"])
def test_a_local_metric_is_believed_less_far(kind):
    """Of two values one matters 1e5 times as little; small changes alone do not prove that."""
    differences = np.random.default_rng(0).normal(size=(2000, 2))
    metric = np.diag([1.0, 1e-5])
    errors = []
    for each in (metric, LocalMetric(metric)):
        basis = learn_basis(kind, differences, each, order=2)
        noise = np.array([basis.decode(e) for e in np.eye(2)])
        errors.append(np.sum(noise**2, axis=0))
    # The optimal variance of value j is proportional to 1 / sqrt(M_jj): 316, and 100 at the floor.
    np.testing.assert_allclose([b / a for a, b in errors], [10**2.5, 10**2], rtol=0.1)


def test_few_pilot_pairs_do_not_make_the_rest_look_still():
    """With 20 pairs of 50 equal values, a rotation must not pass for an improvement.

    In the span of the pairs lie 20 directions; weights taken from the pairs that span it would
    give the other 30 the least possible scale, and fresh pairs a norm many times as large.
    """
    rng = np.random.default_rng(0)
    learned = learn_basis("predictive", rng.normal(size=(20, 50)), None, order=2)
    fresh = rng.normal(size=(1000, 50))
    norms = np.linalg.norm([learned.forward(v) for v in fresh], axis=1)
    inverse = np.array([learned.decode(e) for e in np.eye(50)])
    error = np.mean(norms**2) * np.sum(inverse**2)
    assert error < 1.2 * 50**2  # the identity has 50 * 50


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
        for fold, _ in folds(60, 3):
            assert feared[fold, number].any()
    assert not (feared[:, 1:3] == values[:, 1:3].std(axis=0)).all(axis=1).any()
    often = rng.normal(size=(60, 5))
    np.testing.assert_array_equal(with_rare_changes(values[:, :5], often), often)
    assert with_rare_changes(values[:2], given[:2]).tolist() == given[:2].tolist()


@pytest.mark.parametrize("kind", LEARNERS)
def test_constant_values_and_single_pairs_do_no_harm(kind):
    still = DIFFERENCES * (np.arange(8) != 3)
    for differences in (still, DIFFERENCES[:1], DIFFERENCES * 1e300, DIFFERENCES * 1e-300):
        basis = learn_basis(kind, differences, metric_of(8), 1)
        assert np.isfinite(basis.forward(np.ones(8))).all()
        np.testing.assert_allclose(basis.decode(basis.forward(np.ones(8))), 1, rtol=1e-9)


@pytest.mark.parametrize("kind", [*LEARNERS, "auto"])
def test_pairs_without_any_change_give_the_identity(kind):
    for differences in (np.zeros((5, 4)), np.empty((0, 4)), np.empty((0, 0))):
        basis = learn_basis(kind, differences, None, 1)
        assert basis.kind == "identity"
        assert basis.digest == ""
    assert learn_basis(kind, DIFFERENCES, np.zeros((8, 8)), 1).n_pilot_pairs == 60


@pytest.mark.parametrize(
    ("differences", "metric", "message"),
    [
        (np.full((3, 8), np.nan), None, "pilot differences"),
        (np.ones(8), None, r"pilot differences.*\(8,\)"),
        (DIFFERENCES, np.ones(7), r"metric.*\(7,\)"),
        (DIFFERENCES, np.full((8, 8), np.inf), "metric"),
    ],
)
def test_misfits_are_refused(differences, metric, message):
    with pytest.raises(ValueError, match=message):
        learn_basis("auto", differences, metric, 1)


# The mechanisms.


@given(
    name=st.sampled_from(list(BASES)),
    seed=st.integers(0, 2**32),
    size=st.integers(-12, 12),
    epsilon=st.sampled_from([0.01, 1.0, 20.0]),
    outputs=st.randoms(use_true_random=False),
)
def test_probability_ratio_in_a_basis(name, seed, size, epsilon, outputs):
    """log P(u | f) / P(u | f') of noisy coordinates, as an exact fraction, is within epsilon.

    What is released is a function of u. The values may be any number of times larger than their
    difference, so that rounding in T f is as large as the difference itself.
    """
    rng = np.random.default_rng(seed)
    mechanism = LaplaceMechanism(epsilon, basis=BASES[name])
    value = rng.normal(size=8) * 10.0**size
    other = value + rng.laplace(size=8)
    sensitivity = mechanism.geometry.distance(value, other)
    lattice, scale = laplace_scale(sensitivity, 8, epsilon)
    here, there = (lattice.to_integers(BASES[name].forward(v)).tolist() for v in (value, other))
    for _ in range(5):
        u = [outputs.choice([a, b, a - 10**6, b + scale]) for a, b in zip(here, there, strict=True)]
        far = sum(abs(x - k) for x, k in zip(u, there, strict=True))
        near = sum(abs(x - k) for x, k in zip(u, here, strict=True))
        assert abs(Fraction(far - near, scale)) <= Fraction(epsilon)


def test_the_norm_of_the_difference_alone_would_not_do():
    """Why `distance` takes both values: where T f cancels, its rounding exceeds T (f - f')."""
    T = matrix_of_condition(1e8, d=8)
    mechanism = LaplaceMechanism(1.0, basis=T)
    value = 1e10 * np.linalg.svd(T)[2][-1]
    losses = []
    for other in (np.nextafter(value, sign * np.inf) for sign in (-1, 1)):
        measured = mechanism.geometry.distance(value, other)
        for sensitivity in (np.abs(T @ (value - other)).sum(), measured):
            lattice, scale = laplace_scale(sensitivity, 8, 1.0)
            here, there = (
                lattice.to_integers(mechanism.geometry.basis.forward(v)) for v in (value, other)
            )
            losses.append(np.abs(here - there).sum() / scale)
    assert max(losses[::2]) > 1.05  # the promise of epsilon = 1 broken
    assert max(losses[1::2]) <= 1


GAUSSIAN = partial(GaussianMechanism, delta=1e-5)


@pytest.mark.loop("name", BASES)
@pytest.mark.loop(
    ("make", "order"),
    [(LaplaceMechanism, 1), (GAUSSIAN, 2)],
)
def test_release_goes_through_the_coordinates(name, make, order):
    """The released value is T^-1 of the noisy coordinates, whose noise is that of the identity."""
    value = np.random.default_rng(2).normal(size=(2, 4))
    basis = BASES[name]
    released = make(1.0, basis=basis).release(value, 0.3, byte_source(7))
    coordinates = make(1.0, basis="identity").release(basis.forward(value), 0.3, byte_source(7))
    assert released.shape == value.shape
    np.testing.assert_array_equal(released.ravel(), basis.decode(coordinates))
    norm = make(1.0, basis=basis).geometry.distance(value, np.zeros(8))
    assert norm == pytest.approx(np.linalg.norm(basis.forward(value), order), rel=1e-12)


def test_a_matrix_is_a_basis():
    T = matrix_of_condition(10.0, d=3)
    mechanism = clone(LaplaceMechanism(1.0, basis=T))
    norm = mechanism.geometry.distance([1.0, 2.0, 3.0], np.zeros(3))
    assert norm == pytest.approx(np.abs(T @ [1, 2, 3]).sum())
    assert mechanism.guarantee().basis == "given basis"
    assert not mechanism.learns_basis
    fixed = mechanism.with_geometry(mechanism.geometry)
    assert fixed.geometry == mechanism.geometry != Geometry(1)


def test_auto_is_the_identity_until_it_has_learned():
    mechanism = LaplaceMechanism(1.0)
    assert mechanism.learns_basis
    assert (mechanism.geometry.key, mechanism.guarantee().basis) == ("l1", None)
    learned = with_learned_basis(mechanism, DIFFERENCES, metric_of(8))
    assert mechanism.basis == "auto"
    assert learned.basis == BASES["predictive"]
    assert not learned.learns_basis
    assert learned.geometry.key == f"l1 in basis {BASES['predictive'].digest}"
    assert learned.guarantee().basis == "predictive basis learned from 60 pilot pairs"
    assert "noise in the predictive basis learned from 60 pilot" in str(learned.guarantee())


def test_kinds_that_have_not_learned_measure_nothing():
    mechanism = LaplaceMechanism(1.0, basis="predictive")
    mechanism.guarantee()
    for use in (lambda: mechanism.geometry, lambda: mechanism.release(np.ones(3), 1.0)):
        with pytest.raises(ValueError, match="'predictive', which is learned from pilot pairs"):
            use()


@pytest.mark.parametrize("make", [LaplaceMechanism, GAUSSIAN])
def test_unknown_kind_is_refused(make):
    with pytest.raises(ValueError, match=r"'basis' parameter of .* must be 'auto'"):
        make(1.0, basis="best").guarantee()


@pytest.mark.loop(
    ("basis", "measured", "fits"),
    [
        ("auto", "identity", True),
        ("auto", "predictive", True),
        ("auto", "given", True),
        ("predictive", "predictive", True),
        ("identity", "identity", True),
        ("identity", "predictive", False),
        (BASES["given"].encoder, "given", True),
        (BASES["given"].encoder, "predictive", False),
        (BASES["diagonal"], "diagonal", True),
        (BASES["diagonal"], "identity", False),
    ],
)
def test_basis_of_an_estimate_is_taken_over_or_told_apart(basis, measured, fits):
    in_measured = Geometry(1, BASES[measured])
    mechanism = in_basis_of(in_measured, LaplaceMechanism(2.0, basis=basis))
    assert (mechanism.geometry.key == in_measured.key) is fits
    assert mechanism.epsilon == 2.0


def test_mechanisms_without_bases_have_none():
    mechanism = ExponentialMechanism(1.0)
    assert mechanism.with_geometry(Geometry(1, BASES["given"])) is mechanism
    assert not mechanism.learns_basis
    assert mechanism.geometry.distance([1.0, 5.0], [2.0, 1.0]) == 4.0


def test_infinite_epsilon_does_not_even_round():
    value = np.array([0.1, 1e300, -0.3])
    mechanism = LaplaceMechanism(math.inf, basis=matrix_of_condition(1e6, d=3))
    np.testing.assert_array_equal(mechanism.release(value, 1.0), value)


@pytest.mark.parametrize("n_pairs", [2, 19])
@pytest.mark.parametrize("order", [1, 2])
def test_axes_that_are_singular_are_passed_over_by_auto(n_pairs, order):
    """Few changes of a narrow density leave most lattice points where they are, but for 1e-300."""
    bernstein = BernsteinTransformer(8, feature_range=(0, 1)).fit(np.zeros((1, 2)))
    points, metric = bernstein.lattice_, lattice_metric(bernstein, 81)
    known, metric = metric, metric.matrix
    centers, others = np.random.default_rng(0).uniform(size=(2, n_pairs, 1, 2))
    kernel = [np.exp(-0.5 * ((points - c) ** 2).sum(-1) / 0.01**2) for c in (centers, others)]
    differences = kernel[0] - kernel[1]
    with pytest.raises(ValueError, match="basis"):
        learn_basis("predictive", differences, metric, order)
    basis = learn_basis("auto", differences, metric, order)
    value = np.random.default_rng(1).normal(size=81)
    np.testing.assert_allclose(basis.decode(basis.forward(value)), value, rtol=1e-9)
    believed = learn_basis("predictive", differences, known, order)  # and no number hardly changes
    np.testing.assert_allclose(believed.decode(believed.forward(value)), value, rtol=1e-9)


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
    with np.errstate(all="ignore"):
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


def test_most_pilots_tell_that_a_number_is_rounding():
    """Some deviate from the others by more than rounding does there, and some are not shaken."""
    values = np.column_stack([np.linspace(0, 1, 40), np.linspace(-1, 1, 40) * 1e-14])
    shaken = values[:5] + np.array([0, 1e-13])
    metric = np.array([1.0, 1.0])
    for still, rounded in ((2, True), (3, False)):
        again = shaken.copy()
        again[:still, 1] = values[:still, 1]
        plain, _ = without_rounding(values, values, metric, lambda kept=again: (values[:5], kept))
        assert bool(np.ptp(plain[:, 1]) == 0) is rounded
    values[20:, 1] = 1.0  # where rounding is a rare thing in others, it is told by the usual ones
    values[:30, 1] = np.linspace(-1, 1, 30) * 1e-14
    plain, _ = without_rounding(
        values, values * 0, metric * [1, 1e-20], lambda: (values[:5], shaken)
    )
    assert np.ptp(plain[:, 1]) == 0
    none = np.empty((0, 2))  # on which nothing could be evaluated
    np.testing.assert_array_equal(
        without_rounding(values, values, metric, lambda: (none, none))[0], values
    )


def test_nothing_is_evaluated_again_where_all_that_varies_is_heeded():
    def evaluate():
        raise AssertionError("needless")

    values = np.column_stack([np.linspace(0, 1, 40), np.full(40, 0.1)])
    for metric in (np.array([1.0, 1.0]), np.array([1.0, 0.0])):
        plain, _ = without_rounding(values, values * [1, 0], metric, evaluate)
        np.testing.assert_array_equal(plain, values)


def test_the_errors_of_a_diagonal_basis_are_known_for_any_number_of_values():
    encoder = np.geomspace(0.1, 10, 2001)
    for wide in (encoder, encoder[:3]):
        code = PublicCode("diagonal", 9, encoder=wide)
        inverse = [code.decode(unit) for unit in np.eye(3, len(wide))]
        errors = code.standard_errors(4.0)
        np.testing.assert_allclose(errors[:3], 2 * np.sum(inverse, axis=0)[:3])
        assert errors.shape == wide.shape
