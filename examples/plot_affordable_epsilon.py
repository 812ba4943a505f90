"""
Which epsilon can I afford?
===========================

Two limits hold a Laplace mechanism between them. The noise must not drown the result, which asks
for a large epsilon. And if every person in the data has a claim after a breach, the money that has
to be ready grows with epsilon. This how-to finds the levels between the two, and looks at what the
chosen level means for one release and for many.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from skdp.risk import LaplaceLoss

# %%
# The two limits
# --------------
#
# 2000 customers, a compensation of up to 400 for each, of which 10 are due in any case. How likely
# a breach at level epsilon hurts somebody is a matter of judgment; we take exp(-1 / epsilon).
#
# The mean of a bounded value is to be published to within .01, and its sensitivity is 1 / 2000. The
# mean absolute error of Laplace noise is the sensitivity over epsilon.

customers, most, least, money = 2000, 400, 10, 60_000
sensitivity, max_error = 1 / 2000, 0.01


def cost(epsilon):
    """Return the money to keep ready."""
    return customers * (least + most * np.exp(-1 / epsilon))


lowest = sensitivity / max_error
highest = -1 / math.log((money / customers - least) / most)
print(f"epsilon between {lowest:.3f} and {highest:.3f}")

levels = np.linspace(0.02, 0.8, 100)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(levels, cost(levels), label="cost of the promise")
ax.axhline(money, color="k", lw=1)
ax.axvspan(lowest, highest, alpha=0.2, label="affordable")
ax.set_xlabel("$\\epsilon$")
ax.set_ylabel("money to keep ready")
ax.legend()

# %%
# Where the lowest level is above the highest one, nothing fits: accept a larger error, or keep more
# money ready.

# %%
# What the level means
# --------------------
#
# Take the highest level. The exact law of the loss tells what it is worth for one release, and what
# is left of it after many of the same data.

loss = LaplaceLoss(highest)
print(
    f"one release: mean absolute error {sensitivity / highest:.5f}, loss at most {loss.bound:.3f}"
)
for n in (1, 4, 12, 52):
    total = loss.self_compose(n)
    print(
        f"{n:3} releases: epsilon {total.bound:6.3f} at delta = 0, {total.epsilon(1e-6):6.3f} at "
        f"delta = 1e-6; cost at the former {cost(total.bound):9,.0f}"
    )

# %%
# One release a week for a year is not the same as one release. Find by bisection the level whose
# composition is affordable; it is above the total divided by the number of releases.

low, high = 1e-3, highest
for _ in range(30):
    middle = (low + high) / 2
    enough = LaplaceLoss(middle).self_compose(52).epsilon(1e-6) <= highest
    low, high = (middle, high) if enough else (low, middle)
print(f"52 releases: {low:.4f} each, where basic composition allows {highest / 52:.4f}")
