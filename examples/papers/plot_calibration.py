"""
Sensitivity sampling, figures 2 and 3: how many pairs, and which of them
========================================================================

A sensitivity is sampled from m pairs of datasets, and the k-th smallest change calibrates the
noise. Theorem 15 of the paper says which m and k promise a gamma. Its rule, "dkw" here, asks that
the empirical distribution of the changes be near the true one everywhere, except with
probability rho. But only one more pair has to be covered. The "exact" rule, the default of this
library, asks no more than that: m + 1 changes are exchangeable, so the next one exceeds the k-th of
m with probability at most 1 - k / (m + 1). No rho appears.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduced import FULL, compare
from scipy.special import lambertw

from skdp.sensitivity import order_statistic

# %%
# Figure 2: the fewest pairs for a gamma
# --------------------------------------
# The published curve is the first row of Table 1 in the paper [1]_, computed here once by the
# library and once from the formula. It falls as the square of gamma, the exact rule as gamma.


def by_formula(gamma):
    """Return the fewest pairs by the first row of Table 1."""
    rho = np.exp(lambertw(-gamma / (2 * np.sqrt(np.e)), -1).real + 0.5)
    return int(np.ceil(np.log(1 / rho) / (2 * (gamma - rho) ** 2)))


gammas = np.geomspace(0.001, 0.5, 200 if FULL else 40)
published = [order_statistic(gamma, calibration="dkw").n_pairs for gamma in gammas]
assert published == [by_formula(gamma) for gamma in gammas]
exact = np.ceil(1 / gammas) - 1

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.loglog(gammas, published, color="C0", label="dkw, as published")
ax.loglog(gammas, exact, color="C1", label="exact")
ax.set(xlabel="gamma", ylabel="fewest pairs m", title="Figure 2")
ax.legend()
plt.show()

# %%
# Figure 3: the order statistic of m pairs
# ----------------------------------------
# The smaller the index k the less noise. Below some gamma m pairs promise nothing: there a curve
# ends.

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for color, n_pairs in zip(("C2", "C3", "C4"), (100, 1000, 10_000), strict=True):
    for calibration, style in (("dkw", "-"), ("exact", "--")):
        least = order_statistic(n_pairs=n_pairs, calibration=calibration).gamma
        grid = np.linspace(least, 0.5, 200 if FULL else 40)
        k = [order_statistic(gamma, n_pairs, calibration=calibration).k for gamma in grid]
        label = f"{calibration}, m = {n_pairs}"
        ax.plot(grid, np.divide(k, n_pairs), style, color=color, label=label)
ax.set(xlabel="gamma", ylabel="k / m", title="Figure 3")
ax.legend(fontsize=8)
plt.show()

# %%
# Published, and here
# -------------------
# The rate in the last row is the paper's Corollary 16. It cannot hold: since rho is positive and
# below gamma, the formula is never less than half of ln(1 / gamma) / gamma ** 2.

small = 1e-6
rate = by_formula(small) * small**2 / np.log(1 / small)
assert rate >= 0.5
assert (exact <= published).all()


def pairs(gamma):
    """Return the fewest pairs that promise a gamma by the exact rule."""
    return int(np.ceil(1 / gamma)) - 1


compare(
    *(
        (
            f"figure 2: fewest pairs for gamma {gamma}",
            f"{by_formula(gamma)} (Table 1)",
            f"dkw {order_statistic(gamma, calibration='dkw').n_pairs}, exact {pairs(gamma)}",
            "dkw: the same. exact: one pair is covered, not a whole distribution",
        )
        for gamma in (0.2, 0.05, 0.01)
    ),
    *(
        (
            f"figure 3: index k of {n_pairs} pairs for gamma {gamma}",
            f"{order_statistic(gamma, n_pairs, calibration='dkw').k} (Table 1)",
            f"exact {order_statistic(gamma, n_pairs).k}",
            "the same promise with a smaller order statistic",
        )
        for n_pairs, gamma in ((1500, 0.05), (8000, 0.1))
    ),
    (
        "Corollary 16: rate of m",
        "o(ln(1/gamma) / gamma^2)",
        f"{rate:.2f} ln(1/gamma) / gamma^2 at gamma 1e-6",
        "a slip: the ratio stays above 1/2, so the rate is O and not o",
    ),
)

# %%
# References
# ----------
# .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
#    ICML 2017.
