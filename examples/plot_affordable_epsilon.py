"""
Which epsilon can I afford?
===========================

Two limits hold a Laplace mechanism between them. The noise must not drown the result, which asks
for a large epsilon0. And if every person in the data has a claim after a breach, the money that has
to be ready grows with epsilon0. This how-to finds the levels between the two, says what happens
when there are none, and looks at what the chosen level means for one release and for many.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdp.risk import CompensationModel, LaplaceLoss

# %%
# The two limits
# --------------
#
# 2000 customers, a compensation of up to 400 for each, of which 10 are due in any case. The mean
# of a bounded value is to be published to within .01, and its sensitivity is 1 / 2000.

model = CompensationModel(budget=400, stakeholders=2000, minimum=10)
sensitivity, max_error = 1 / 2000, 0.01
money = 60_000

lowest, highest = model.epsilon_range(money, max_error, sensitivity=sensitivity)
print(f"epsilon0 between {lowest:.3f} and {highest:.3f}")

# %%
# By default the model lets a smaller loss count, as often as it happens by the exact law. A careful
# planner leaves that out: a confidence of 1 in epsilon itself.

careful = model.affordable_epsilon(money, epsilon0=1.0, confidence=1.0)
print(f"with nothing but the promise: at most {careful:.3f}")

levels = np.linspace(0.02, 0.8, 100)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(levels, model.cost(levels), label="cost of the promise")
at_risk = [model.cost_at_risk(model.optimal_epsilon(level), level) for level in levels]
ax.plot(levels, at_risk, "--", label="cost at risk")
ax.axhline(money, color="k", lw=1)
ax.axvspan(lowest, careful, alpha=0.2, label="affordable")
ax.set_xlabel("$\\epsilon_0$")
ax.set_ylabel("money to keep ready")
ax.legend()

# %%
# When nothing fits
# -----------------
#
# Ask for more accuracy than the money allows and the error names the nearest limits that work.

try:
    model.epsilon_range(money, max_error=0.001, sensitivity=sensitivity)
except ValueError as error:
    print(error)

# %%
# What the level means
# --------------------
#
# Take the careful level. The exact law of the loss tells what it is worth for one release, and what
# is left of it after many of the same data.

loss = LaplaceLoss(careful)
print(
    f"one release: mean absolute error {sensitivity / careful:.5f}, loss at most {loss.bound:.3f}"
)
for n in (1, 4, 12, 52):
    total = loss.self_compose(n)
    print(
        f"{n:3} releases: epsilon {total.bound:6.3f} at delta = 0, {total.epsilon(1e-6):6.3f} at "
        f"delta = 1e-6; cost at the former {model.cost(total.bound):9,.0f}"
    )

# %%
# One release a week for a year is not the same as one release. Find by bisection the level whose
# composition is affordable; it is above the total divided by the number of releases.

low, high = 1e-3, careful
for _ in range(30):
    middle = (low + high) / 2
    enough = LaplaceLoss(middle).self_compose(52).epsilon(1e-6) <= careful
    low, high = (middle, high) if enough else (low, middle)
print(f"52 releases: {low:.4f} each, where basic composition allows {careful / 52:.4f}")
