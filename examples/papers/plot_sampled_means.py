"""
Sensitivity sampling, figures 4 and 9: means
============================================

A mean of n records changes by the difference of two records, divided by n. Its sensitivity is known
on paper, so the sampled one can be held against it: the quantile of the changes where the records
are exponential, the largest change that is possible where they are bounded.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduced import FULL, compare

from skdp import SensitivitySampler
from skdp.bounds import mean_bound
from skdp.functions import AdditiveTarget
from skdp.sensitivity import order_statistic

# %%
# Figure 4: exponential records
# -----------------------------
# The change exceeds t with probability exp(-n t), so ln(1 / gamma) / n covers all but a share
# gamma of the pairs. The paper [1]_ does not say its n, which moves only the scale: 100 here.
# Curves are means over 50 samplings. Solid are the estimates of the published rule; they begin
# where m pairs can promise gamma. Dashed are those of the exact rule: for 500 pairs it is already
# on the curve.

N_RECORDS, N_REPEATS, NUMBERS = 100, 50, (500, 2000, 8000)
gammas = np.linspace(0.02, 0.25, 93 if FULL else 24)
known = np.log(1 / gammas) / N_RECORDS
records = np.random.default_rng(0).exponential(size=(2, N_REPEATS, max(NUMBERS)))
changes = np.abs(records[0] - records[1]) / N_RECORDS

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(gammas, known, color="black", label="on paper, ln(1 / gamma) / n")
excess = {}
for color, n_pairs in zip(("C0", "C1", "C3"), NUMBERS, strict=True):
    drawn = np.sort(changes[:, :n_pairs])
    for calibration, style in (("dkw", "-"), ("exact", "--")):
        least = order_statistic(n_pairs=n_pairs, calibration=calibration).gamma
        promised = gammas >= least
        k = [order_statistic(g, n_pairs, calibration=calibration).k for g in gammas[promised]]
        curve = drawn[:, np.array(k) - 1].mean(axis=0)
        excess[calibration, n_pairs] = (curve / known[promised])[-1] - 1
        label = f"{calibration}, m = {n_pairs}"
        ax.plot(gammas[promised], curve, style, color=color, label=label)
ax.set(xlabel="gamma", ylabel="sensitivity", title="Figure 4: the mean of exponential records")
ax.legend(fontsize=8)
plt.show()

# %%
# Figure 9: bounded records
# -------------------------
# Of 500 records in the unit cube of d dimensions, one can move the mean by d / 500 in the L1 norm.
# On the left the records are uniform, as published. On the right they have a heavy tail: most are
# near .001, and the share of those above t is .001 / t, up to 1. So it is with incomes, as shares
# of the largest one.


def uniform(n, d, rng):
    """Draw records from the unit cube."""
    return rng.uniform(size=(n, d))


def heavy_tailed(n, d, rng):
    """Draw records from a Pareto law, cut off at 1."""
    return np.minimum(0.001 / rng.uniform(size=(n, d)), 1)


class Records:
    """An oracle of independent records: two of them make a pair of datasets."""

    independent_records = True

    def __init__(self, draw, d):
        self.draw, self.d = draw, d

    def __call__(self, n, rng):
        return self.draw(n, self.d, rng)


N_BOUNDED, mean = 500, AdditiveTarget(np.asarray)
dimensions = (1, 2, 4, 8, 16, 32, 64)
largest = np.array([mean_bound(N_BOUNDED, d, ranges=(0, 1)).value for d in dimensions])
fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
factors = {}
for ax, draw in zip(axes, (uniform, heavy_tailed), strict=True):
    ax.loglog(dimensions, largest, color="black", label="global, d / n")
    for calibration, style in (("dkw", "-"), ("exact", "--")):
        for color, gamma in zip(("C0", "C1", "C3"), (0.05, 0.1, 0.2), strict=True):
            curve = [
                SensitivitySampler(
                    Records(draw, d), gamma=gamma, calibration=calibration, random_state=0
                )
                .sample(mean, N_BOUNDED, "l1")
                .value
                for d in dimensions
            ]
            factors[draw, calibration, gamma] = largest / curve
            ax.loglog(dimensions, curve, style, color=color, label=f"{calibration}, gamma {gamma}")
    ax.set(xlabel="dimension d", title=f"Figure 9: {draw.__name__.replace('_', ' ')} records")
axes[0].set(ylabel="sensitivity of the mean, L1")
axes[0].legend(fontsize=8)
plt.show()

# %%
# Published, and here
# -------------------
# The fewest pairs that the published rule allows use the largest of their changes. So it
# saves little in one dimension, of uniform records and of others. The exact rule need not go so
# far. But no rule can save a factor of more than about three on uniform records, as two of them are
# a third of the range apart on average. A heavy tail makes the difference that the paper calls
# striking, and it is dearly bought: one of the 5 % of pairs that are not covered may lose as many
# times epsilon as the factor says.

for (draw, *_), factor in factors.items():
    assert draw is heavy_tailed or ((factor >= 1).all() and (factor < 3.2).all())
assert factors[heavy_tailed, "exact", 0.05][0] > 10
assert all(abs(excess["exact", n_pairs]) < excess["dkw", n_pairs] for n_pairs in NUMBERS)


def show(draw, at):
    """Write down how many times the global sensitivity is the sampled one, for gamma .05."""
    dkw, exact = (factors[draw, calibration, 0.05][at] for calibration in ("dkw", "exact"))
    return f"dkw {dkw:.2f}, exact {exact:.2f}"


compare(
    *(
        (
            f"figure 4: excess over the curve at gamma .25, m = {n_pairs}",
            "quickly converging to exact",
            f"dkw {excess['dkw', n_pairs]:.1%}, exact {excess['exact', n_pairs]:.1%}",
            "dkw pays for all quantiles at once",
        )
        for n_pairs in NUMBERS
    ),
    *(
        (
            f"figure 9: global over sampled, {draw.__name__}, gamma .05, d = {dimensions[at]}",
            published,
            show(draw, at),
            why,
        )
        for draw, published, why in (
            (uniform, "striking (note the log scale)", "no rule can save more than about 3"),
            (heavy_tailed, "not tried", "large changes are rare, and rare is not covered"),
        )
        for at in (0, -1)
    ),
    (
        "figure 9: pairs sampled for gamma .05",
        "1305 (Table 1)",
        "dkw 1305, exact 199",
        "19 would do; ten times as many keep the estimate steady",
    ),
)

# %%
# References
# ----------
# .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
#    ICML 2017: example 6, section 7.1, and appendix C of the version with proofs.
