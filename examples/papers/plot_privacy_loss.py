"""
Where a mechanism leaks
=======================

Differential privacy is a property of single outputs: its epsilon is the largest log ratio of the
two densities that an output can have, on one dataset and on its neighbor. So it can be drawn. The
upper panels show the densities of the outputs on two neighboring datasets, estimated from 100,000
runs each; the lower ones show the privacy loss, the absolute log ratio, with pointwise 95 %
intervals, and the epsilon that is claimed.

After figure 2 and example 1 of Askin, Kutta and Dette, "Statistical Quantification of Differential
Privacy: A Local Approach", IEEE S&P 2022.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp.audit import PrivacyLossDisplay, audit_epsilon, estimate_privacy_loss

N_RUNS = 100_000


def draw(title, mechanism, pair, claimed, true):
    """Draw the loss of one mechanism, and say what an audit certifies."""
    rng = np.random.default_rng(0)
    x, x_prime = (mechanism(dataset, N_RUNS, rng) for dataset in pair)
    loss = estimate_privacy_loss(x, x_prime)
    display = PrivacyLossDisplay(loss, claimed_epsilon=claimed).plot()
    display.figure_.suptitle(title)
    certified = audit_epsilon(mechanism, [pair], claimed_epsilon=claimed, rng=0)
    print(f"largest estimated loss: {loss}")
    print(f"true epsilon of this pair: {true:.4g}")
    print(f"label test: {certified}")


# %%
# Randomized response
# -------------------
# The truth, one of ten answers, is told with probability .3, and every other answer with
# probability .7/9. Only two outputs say anything about which of two truths it is.


def answers(truth, n, rng):
    """Answer n times."""
    lies = (truth + rng.integers(1, 10, size=n)) % 10
    return np.where(rng.random(n) < 0.3, truth, lies)


epsilon = np.log(0.3 / (0.7 / 9))
draw("Randomized response", answers, (3, 6), claimed=epsilon, true=epsilon)
plt.show()

# %%
# Laplace noise
# -------------
# The loss is epsilon everywhere except between the two values, where it passes through 0.


def with_laplace_noise(x, n, rng):
    """Add noise of scale 1."""
    return x + rng.laplace(size=n)


draw("Laplace noise", with_laplace_noise, (0.0, 1.0), claimed=1.0, true=1.0)
plt.show()

# %%
# Gaussian noise
# --------------
# The loss grows without bound in both tails, so no epsilon holds without a delta. A claim of 2 is
# true near the middle, and the tails give it away.


def with_normal_noise(x, n, rng):
    """Add noise of deviation 1."""
    return x + rng.normal(size=n)


draw("Gaussian noise", with_normal_noise, (0.0, 1.0), claimed=2.0, true=np.inf)
plt.show()

# %%
# The maximum of noisy values
# ---------------------------
# Each of k = 4 values gets Laplace noise of rate lambda = .5, and the largest is released. It is
# tempting to think that one value is released and one lambda paid. But for small outputs *all*
# noisy values were small: below the smallest value the loss is k lambda = 2, and far above the
# largest one it comes down to lambda = .5.

k, rate = 4, 0.5


def noisy_maximum(x, n, rng):
    """Return the largest of the noisy values."""
    return (x + rng.laplace(scale=1 / rate, size=(n, k))).max(axis=1)


draw("Noisy maximum", noisy_maximum, ((0.0,) * k, (1.0,) * k), claimed=rate, true=k * rate)
levels = plt.gcf().axes[1]
levels.axhline(k * rate, color="C3", lw=1, label="k lambda")
levels.legend()
plt.show()

# %%
# What cannot be seen
# -------------------
# The picture is blind where both densities are below a floor, and so is every audit that looks at a
# finite number of runs: a mechanism that publishes everything with probability one in a million
# looks perfect here. *None found* is never *verified*.
