"""What many tests begin with: a private estimator whose pairs are few and whose noise is seeded."""

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler


def sampler(*public, **options):
    """Return a sampler of few pairs, from an oracle or from public records."""
    oracle = public[0] if callable(public[0]) else PublicDataOracle(*public)
    return SensitivitySampler(oracle, **{"gamma": 0.2, "n_pairs": 4, "random_state": 0} | options)


def private(estimator, *public, **options):
    """Return a private estimator that samples its sensitivity, where it is given public records."""
    usual = {"mechanism": LaplaceMechanism(1.0), "random_state": 0}
    usual |= {"sensitivity": sampler(*public)} if public else {}
    return PrivateEstimator(estimator, **usual | options)


def fitted_state(model):
    """Return the attributes that a fit has set, by name."""
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}
