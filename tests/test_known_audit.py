"""Releases whose sensitivity is known, on their worst pairs: the promise is kept, and only just."""

import pytest
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from skdp import ClipBox, GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism, MomentClassifier
from skdp.audit import audit_release
from tests.known_cases import BALL, exact_loss, worst_of_density, worst_of_mean, worst_of_minimizer

OPTIONS = {"stacked": True, "alpha": 1e-4, "rng": 0, "n_search": 2000, "n_final": 8000}
LAPLACE = LaplaceMechanism(1.0)
HINGE = LinearSVC(C=1e-3, loss="hinge", intercept_scaling=0.7)
WORST = {
    "counts": lambda: worst_of_mean([ClipBox(0, 2)], MultinomialNB(), 2, LAPLACE),
    "svm": lambda: worst_of_minimizer(HINGE, LAPLACE),
    "kde": lambda: worst_of_density(LAPLACE),
}


# a kernel that reaches no second point of the lattice is the worst
# narrow on purpose
@pytest.mark.filterwarnings("ignore:The bandwidth of KernelDensity.* is far below")
@pytest.mark.parametrize("name", WORST)
def test_the_promise_is_kept_and_half_the_noise_is_found(name):
    """Seeded; an audit errs with probability 1e-4 at most."""
    plan, pair = WORST[name]()
    bound = plan.sensitivity.value
    assert 0.9 < exact_loss(LAPLACE, pair, bound) <= 1
    assert not audit_release(*pair, plan.mechanism, bound, **OPTIONS).violated
    assert audit_release(*pair, plan.mechanism, bound / 2, **OPTIONS).violated


def test_noise_by_the_euclidean_length_keeps_its_promise_and_half_of_it_does_not():
    """Exactly for L2 Laplace noise, whose log ratio is the length of the difference over t."""
    mechanism = L2LaplaceMechanism(1.0)
    plan, pair = worst_of_mean(BALL, MomentClassifier(), 2, mechanism)
    bound = plan.sensitivity.value
    losses = [exact_loss(mechanism, pair, each) for each in (bound, bound / 2)]
    assert 0.99 < losses[0] <= 1 < 1.98 < losses[1]

    mechanism = GaussianMechanism(1.0, 0.01)
    assert not audit_release(*pair, mechanism, bound, **OPTIONS).violated
    assert audit_release(*pair, mechanism, bound / 2, **OPTIONS).violated
