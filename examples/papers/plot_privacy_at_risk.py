"""
Privacy at risk, figures 1 to 5: the published law and the exact one
====================================================================

A Laplace mechanism of level epsilon0 promises that the privacy loss never exceeds epsilon0. How
often is the loss smaller than some epsilon below it? "Differential Privacy at Risk" (Dandekar, Basu
and Bressan, PoPETs 2021) answers with a formula, and builds five figures on it. This example draws
the five figures again and puts the exact law of the loss beside each of them.

They differ, and not by a little. The published formula is the law of another quantity: it treats
the distances of the outcome from the two target values as independent, although both are functions
of the same outcome. The functions of `at_risk.py`, beside this page, reproduce it.
"""

import matplotlib.pyplot as plt
import numpy as np
from at_risk import (
    advanced_composition,
    best_epsilon,
    cost,
    cost_at_risk,
    dkw_n_pairs,
    paper_composition,
    paper_confidence,
    paper_epsilon,
    paper_joint_confidence,
    sampled_confidence,
    two_sided_confidence,
)
from reproduced import compare

from skdp.risk import LaplaceLoss

# %%
# Figure 1: a stronger level and its confidence
# ---------------------------------------------
#
# On the left epsilon0 = 1 and the number of outputs k varies, on the right k = 1 and epsilon0
# varies. Lines are published; dashed is the exact probability that the loss of the worst pair is at
# most epsilon, dotted that it is so in absolute value. Neither can exceed 1/2 below epsilon0: half
# of the noise falls on the side where the loss is epsilon0. And k does not help, because the worst
# pair may put all of its distance on one output.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
levels = np.linspace(0.005, 0.995, 100)
for k in (1, 2, 3):
    axes[0].plot(levels, [paper_confidence(e, 1.0, k) for e in levels], label=f"published, k = {k}")
axes[0].plot(levels, LaplaceLoss(1.0).cdf(levels), "k--", label="exact, any k")
axes[0].plot(levels, two_sided_confidence(levels, 1.0), "k:", label="exact, two-sided, k = 1")
for color, epsilon0 in zip(("C0", "C3", "C4"), (0.5, 1.0, 2.0), strict=True):
    grid = levels * epsilon0
    published = [paper_confidence(e, epsilon0) for e in grid]
    axes[1].plot(grid, published, color, label=f"published, $\\epsilon_0$ = {epsilon0:g}")
    axes[1].plot(grid, LaplaceLoss(epsilon0).cdf(grid), "--", color=color)
for ax in axes:
    ax.set_xlabel("stronger level $\\epsilon$")
    ax.legend(fontsize=8)
axes[0].set_ylabel("confidence")

print("confidence at epsilon0 = 1    published k = 1, 2, 3       exact   two-sided")
for epsilon in (0.1, 0.25, 0.5, 0.75, 0.9):
    row = [paper_confidence(epsilon, 1.0, k) for k in (1, 2, 3)]
    row += [LaplaceLoss(1.0).cdf(epsilon), two_sided_confidence(epsilon, 1.0)]
    print(f"epsilon = {epsilon:4}            " + "  ".join(f"{value:8.4f}" for value in row))
print("epsilon at confidence 1/2     published      exact")
for epsilon0 in (0.5, 1.0, 2.0, 3.0):
    exact = LaplaceLoss(epsilon0).quantile(0.5 + 1e-12)
    print(
        f"epsilon0 = {epsilon0:3}              {paper_epsilon(0.5, epsilon0):8.4f}   {exact:8.4f}"
    )

# %%
# Figure 2: how many pairs
# ------------------------
#
# The paper asks for so many pairs that the empirical distribution of the sampled sensitivities is
# within rho of the true one with some confidence. That is right, but more than is needed: the
# sampled sensitivities and the next one are exchangeable, so that the largest of m covers the next
# with probability m / (m + 1). No rho appears, and no square of one.

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
confidence = np.linspace(0.5, 0.999, 100)
for rho in (0.01, 0.05, 0.1):
    ax.semilogy(confidence, [dkw_n_pairs(rho, c) for c in confidence], label=f"published, {rho = }")
ax.semilogy(confidence, np.ceil(confidence / (1 - confidence)), "k--", label="order statistic")
ax.set_xlabel("probability of covering the pair")
ax.set_ylabel("pairs")
ax.set_ylim(top=1e7)
ax.legend(fontsize=8, loc="upper left")

print(
    "pairs for .95: ", {rho: dkw_n_pairs(rho) for rho in (0.01, 0.05, 0.1)}, "order statistic: 19"
)

# %%
# Figure 3: pair and noise together
# ---------------------------------
#
# The largest of n sampled sensitivities calibrates the noise. Published is the product of the
# confidence of Figure 1 and of the factor of Figure 2, which loses rho on the way. What holds is
# the exact law times (1 - rho) times that factor, or, dashed, times n / (n + 1).

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
exact = LaplaceLoss(1.0).cdf(levels)


def draw(ax, rho, n, color, label):
    """Draw the published curve and what holds of it."""
    published = [paper_joint_confidence(e, 1.0, 1.0, rho, n) for e in levels]
    ax.plot(levels, published, color, label=f"published, {label}")
    ax.plot(levels, exact * sampled_confidence(1.0, rho, n), ":", color=color)


for color, rho in zip(("C0", "C1", "C2"), (0.005, 0.01, 0.02), strict=True):
    draw(axes[0], rho, 10_000, color, f"{rho = }")
for color, n in zip(("C0", "C1", "C2"), (5_000, 10_000, 20_000), strict=True):
    draw(axes[1], 0.01, n, color, f"{n = }")
for ax, title in zip(axes, ("10,000 pairs", "rho = .01"), strict=True):
    ax.plot(levels, exact * 10_000 / 10_001, "k--", label="exact, order statistic")
    ax.set_title(title)
    ax.set_xlabel("stronger level $\\epsilon$")
    ax.legend(fontsize=8)
axes[0].set_ylabel("confidence")

print("at epsilon = .5, rho = .01    published     with rho    order statistic")
for n in (5_000, 10_000, 20_000):
    noise = LaplaceLoss(1.0).cdf(0.5)
    row = [paper_joint_confidence(0.5, 1.0, 1.0, 0.01, n)]
    row += [noise * sampled_confidence(1.0, 0.01, n), noise * n / (n + 1)]
    print(f"n = {n:6}                    " + "     ".join(f"{value:8.4f}" for value in row))

# %%
# Figure 4: the compensation
# --------------------------
#
# The cost model weighs the cost at epsilon with the confidence that epsilon is kept. With the exact
# law the confidence is smaller and so is the saving. The example :ref:`on compensation
# <sphx_glr_auto_examples_papers_plot_compensation.py>` tells what that means.

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
costs = {}
for color, epsilon0 in zip(("C0", "C1", "C2"), (0.5, 0.6, 0.7), strict=True):
    grid = np.linspace(0.02, 1, 80) * epsilon0
    for name, law, style in (
        ("paper", paper_confidence, "-"),
        ("exact", two_sided_confidence, "--"),
    ):
        best = best_epsilon(epsilon0, law)
        least = costs[name, epsilon0] = cost_at_risk(best, epsilon0, law)
        ax.plot(grid, cost_at_risk(grid, epsilon0, law), style, color=color)
        ax.plot(best, least, "o", color=color)
        print(
            f"epsilon0 = {epsilon0}, {name:5}: least {least:9.2f} "
            f"at {best:.6f} with confidence {law(best, epsilon0):.6f}; "
            f"without a stronger level {cost(epsilon0):9.2f}"
        )
ax.set_xlabel("stronger level $\\epsilon$")
ax.set_ylabel("compensation")
ax.set_title("published (lines) and exact (dashed)")

# %%
# Figure 5: many releases
# -----------------------
#
# Theorem 9 composes n releases with the confidence at the level of least cost. It improves on the
# advanced composition theorem, but both are far from the truth: adding up the exact losses, which
# takes a few milliseconds, is better than any of the three formulas, always.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
delta, counts, table = 1e-5, (10, 50, 100, 300), {}
print("epsilon0    n      basic   advanced  Theorem 9      exact")
for ax, epsilon0 in zip(axes, (0.1, 0.5, 1.0), strict=True):
    epsilon = best_epsilon(epsilon0, paper_confidence)
    level = paper_confidence(epsilon, epsilon0)
    rows = np.array(
        [
            [
                n * epsilon0,
                advanced_composition(epsilon0, n, delta),
                paper_composition(epsilon, epsilon0, level, n, delta),
                LaplaceLoss(epsilon0).self_compose(n).epsilon(delta),
            ]
            for n in counts
        ]
    )
    table[epsilon0] = rows[-1]
    for n, row in zip(counts, rows, strict=True):
        print(f"{epsilon0:8}  {n:3} " + " ".join(f"{value:10.3f}" for value in row))
    for name, values in zip(("basic", "advanced", "Theorem 9", "exact"), rows.T, strict=True):
        ax.plot(counts, values, "k--" if name == "exact" else ".-", label=name)
    ax.set_title(f"$\\epsilon_0$ = {epsilon0}")
    ax.set_xlabel("releases")
axes[0].set_ylabel("$\\epsilon$ at $\\delta = 10^{-5}$")
axes[0].legend(fontsize=8)

crossings = []
for epsilon0 in (0.1, 0.5, 1.0):
    epsilon = best_epsilon(epsilon0, paper_confidence)
    args = epsilon, epsilon0, paper_confidence(epsilon, epsilon0)
    n = 1
    while paper_composition(*args, n, delta) > n * epsilon0:
        n += 1
    crossings.append(n)

# %%
# Published, and here
# -------------------
# The paper prints few numbers; the others in its column follow from its formulas. The question was
# a good one, and it has an exact answer: `LaplaceLoss` or `privacy_loss_distribution` for one
# release, `self_compose` for many, `joint_risk` where the sensitivity was sampled. None of the
# published numbers enters a guarantee.

assert round(costs["paper", 0.5], 2) == 37805.86
assert crossings == [27, 57, 2494]
assert all(row[-1] < min(row[:-1]) for row in table.values())
assert all(LaplaceLoss(1.0).cdf(epsilon) < 0.5 for epsilon in levels)

one, two = LaplaceLoss(1.0).cdf(0.5), two_sided_confidence(0.5, 1.0)
compare(
    (
        "figure 1a: confidence in .5 at epsilon0 = 1, for k = 1, 2, 3",
        ", ".join(f"{paper_confidence(0.5, 1.0, k):.4f}" for k in (1, 2, 3)),
        f"{one:.4f}, two-sided {two:.4f}, for any k",
        "Theorem 10 is the law of another quantity",
    ),
    (
        "figure 1b: epsilon at confidence 1/2 for epsilon0 = .5, 1, 2",
        ", ".join(f"{paper_epsilon(0.5, epsilon0):.4f}" for epsilon0 in (0.5, 1.0, 2.0)),
        "epsilon0 itself",
        "half of the noise loses all of epsilon0",
    ),
    (
        "figure 2: pairs for .95 with rho = .01, .05, .1",
        ", ".join(f"{dkw_n_pairs(rho)}" for rho in (0.01, 0.05, 0.1)),
        "19",
        "one pair has to be covered, not a distribution",
    ),
    (
        "figure 3: confidence in .5 from 10,000 pairs, rho = .01",
        f"{paper_joint_confidence(0.5, 1.0, 1.0, 0.01, 10_000):.4f}",
        f"{one * 10_000 / 10_001:.4f}",
        "rho is lost in Theorem 13, and the law is that of figure 1",
    ),
    (
        "figure 4: least compensation at epsilon0 = .5",
        "37805.86 at .274",
        f"{costs['paper', 0.5]:.2f}; exact {costs['exact', 0.5]:.2f}",
        "reproduced; by the exact law less is saved",
    ),
    *(
        (
            f"figure 5: epsilon of 300 releases at epsilon0 = {epsilon0}",
            f"basic {row[0]:.1f}, advanced {row[1]:.1f}, Theorem 9 {row[2]:.1f}",
            f"{row[3]:.1f}",
            f"the losses are added up exactly; Theorem 9 is below basic from {n} releases on",
        )
        for (epsilon0, row), n in zip(table.items(), crossings, strict=True)
    ),
)

# %%
# References
# ----------
# Dandekar, Basu and Bressan, "Differential Privacy at Risk: Bridging Randomness and Privacy
# Budget", PoPETs 2021.
