"""What many tests begin with: a private estimator whose pairs are few and whose noise is seeded."""

import numpy as np

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
from skdp.codes import PublicCode


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


def diagonal_code(encoder, deviations=None, mean=None, **options):
    """Make a code of each number by itself, of deviation 1 and mean 0 unless they are given."""
    encoder = np.asarray(encoder, dtype=float)
    deviations = np.ones(len(encoder)) if deviations is None else np.asarray(deviations)
    rows = np.diag(encoder)[encoder != 0]
    covariance = deviations[:, None] ** 2 * rows.T
    return PublicCode(
        encoder=rows,
        mean=np.zeros(len(encoder)) if mean is None else mean,
        deviations=deviations,
        removable=covariance.T @ covariance / max(np.sum(deviations**2), 1e-300),
        covariance=covariance,
        **options,
    )
