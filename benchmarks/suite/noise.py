"""Seconds of one release, by the law of the noise and how many numbers get it."""

import numpy as np

from skdp import GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism

MECHANISMS = {
    "laplace": LaplaceMechanism(1.0),
    "gaussian": GaussianMechanism(1.0, 1e-5),
    "l2 laplace": L2LaplaceMechanism(1.0),
}


class Noise:
    """A release of zeros."""

    params = (tuple(MECHANISMS), (1, 4, 8, 16))
    param_names = ("noise", "n_values")

    def time_release(self, noise, n_values):
        """Draw, add and scale back."""
        MECHANISMS[noise].release(np.zeros(n_values), 1.0)
