"""
diffpriv: a number, a choice and a function
===========================================

:func:`skdp.release` makes any Python function of a dataset private. What comes out depends on the
mechanism: a noisy number, one of several responses, or a whole function. These are the three
examples of the R package diffpriv, each with the exact value beside the private one.
"""

import matplotlib.pyplot as plt
import numpy as np
from reproduced import BernsteinMechanism, compare

from skdp import (
    BernsteinTransformer,
    ExponentialMechanism,
    LaplaceMechanism,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.bounds import mean_bound
from skdp.functions import BernsteinTarget

rng = np.random.default_rng(0)

# %%
# A number: the mean
# ------------------
# The mean of 100 numbers in [0, 1] changes by at most 1/100 when one of them is replaced. Nothing
# has to be sampled, and the promise is plain differential privacy.

numbers = rng.uniform(size=(100, 1))
laplace = LaplaceMechanism(epsilon=1.0, code=None)
bound = mean_bound(100, ranges=(0, 1))
known = release(np.mean, numbers, mechanism=laplace, sensitivity=bound)
print(f"exact {numbers.mean():.4f}, private {known.value:.4f}")
print(known.guarantee)

# %%
# A sampler does not know the bound. It draws pairs of datasets that differ in one record, and
# measures. It stays below the bound, since on few pairs a 0 is replaced by a 1. For that the
# promise now holds on a share of 1 - gamma of all pairs. With `code="learned"` the number would
# also be drawn towards the means of the oracle's datasets.

sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.1, random_state=0)
sampled = release(np.mean, numbers, mechanism=laplace, sensitivity=sampler)
print(f"exact {numbers.mean():.4f}, private {sampled.value:.4f}")
print(f"largest change: {1 / 100} on paper, {sampled.sensitivity.value:.4f} sampled")
print(sampled.guarantee)

# %%
# A choice: the most frequent letter
# ----------------------------------
# Which letter is the most frequent one in the names of ten computer scientists [1]_? Noise cannot
# be added to a letter. The exponential mechanism takes one at random, and the more often a letter
# occurs the likelier it is.
#
# The oracle needs plausible names. From a public list it joins the beginning of one name to the
# end of another, and does so twice. It knows how names look, and has seen none of the private ones.

PUBLIC_NAMES = (
    "adele amina anders beatriz benedikt bogdan carmen cosimo dalia dimitri elena emeka farida "
    "florian gabriel greta hamza henrik ingrid isabel jasper jolanta kamal katarina leandro lucia "
    "mariam matteo nadia niklas olga oscar paloma patrick quentin rania roberto samira sergei "
    "tatiana tomas ulrich valeria viktor wanda xenia yasmin yusuf zara zoltan"
)
COMPUTER_SCIENTISTS = np.array(
    [
        "Michael Jordan",
        "Andrew Ng",
        "Andrew Zisserman",
        "Christopher Manning",
        "Jitendra Malik",
        "Geoffrey Hinton",
        "Scott Shenker",
        "Bernhard Scholkopf",
        "Jon Kleinberg",
        "Judea Pearl",
    ],
    dtype=object,
)
LETTERS = list("abcdefghijklmnopqrstuvwxyz")


def invent_names(n_samples, rng):
    """Draw names that nobody has to bear."""
    first, second = rng.choice(PUBLIC_NAMES.split(), size=(2, 2 * n_samples))
    words = [
        (a[: (len(a) + 1) // 2] + b[len(b) // 2 :]).capitalize()
        for a, b in zip(first, second, strict=True)
    ]
    full = [f"{a} {b}" for a, b in zip(words[::2], words[1::2], strict=True)]
    return np.array(full, dtype=object)


def count_letters(names):
    """Count how often each small letter occurs."""
    text = "".join(names)
    return [text.count(letter) for letter in LETTERS]


print("invented:", ", ".join(invent_names(5, rng)))
chosen = release(
    count_letters,
    COMPUTER_SCIENTISTS,
    mechanism=ExponentialMechanism(epsilon=1.0),
    sensitivity=SensitivitySampler(invent_names, gamma=0.1, random_state=0),
    responses=LETTERS,
)
counts = count_letters(COMPUTER_SCIENTISTS)
print(f"exact {LETTERS[np.argmax(counts)]!r}, private {chosen.value!r}")
print(f"largest change of a count: {chosen.sensitivity.value:.0f}")
print(chosen.guarantee)

# %%
# The law of the choice, which only the owner of the data can compute, at two levels of privacy.
# The smaller epsilon is, the closer it comes to drawing any letter.

fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
top.bar(LETTERS, counts, color="0.4")
top.set(ylabel="count", title="Letters in ten names")
for epsilon, shift in ((5.0, 0.2), (1.0, -0.2)):
    law = ExponentialMechanism(epsilon).probabilities(counts, chosen.sensitivity.value)
    bottom.bar(np.arange(26) + shift, law, width=0.4, label=f"epsilon {epsilon:g}")
bottom.set(ylabel="probability", title="How likely each letter is to be released")
bottom.legend()
plt.show()

# %%
# A function: kernel regression
# -----------------------------
# 250 records hold a position x and a noisy response y. The Priestley-Chao estimate of the curve
# behind them weighs each response by a kernel around its position and by the gap to the position
# before. Its values on 26 lattice points get noise, and Bernstein polynomials of degree 25,
# iterated three times, make a smooth curve of them.
#
# The oracle knows the ranges of x and y and nothing else. As in the package, the sup norm is
# calibrated by the "dkw" rule, which takes the 439th of 500 sampled changes for gamma = .2. Beside
# it is what the library does: a public code, and the 401st of 500 changes by the exact rule. The
# noise is seeded here, so that the figure can be drawn again.


def priestley_chao(X, points, bandwidth=0.1):
    """Estimate the regression curve at the points."""
    x, y = X[np.argsort(X[:, 0])].T
    gaps = np.diff(x, prepend=0.0)
    kernels = np.exp(-0.5 * ((points - x) / bandwidth) ** 2) / (bandwidth * np.sqrt(2 * np.pi))
    return kernels @ (gaps * y)


x = rng.uniform(size=250)
X = np.column_stack([x, x * np.sin(10 * x) + rng.normal(scale=0.2, size=250)])
bernstein = BernsteinTransformer(degree=25, order=3, feature_range=(0, 1))
oracle = UniformOracle([(0, 1), (-1.5, 1.5)])
curves = {
    name: release(
        BernsteinTarget(priestley_chao, bernstein),
        X,
        mechanism=mechanism,
        sensitivity=SensitivitySampler(
            oracle, gamma=0.2, n_pairs=500, calibration=calibration, random_state=0
        ),
        random_state=seed,
    )
    for seed, name, mechanism, calibration in (
        (1, "sup norm, dkw", BernsteinMechanism(epsilon=5.0), "dkw"),
        (2, "public code, exact", LaplaceMechanism(5.0, code="learned"), "exact"),
    )
}
for name, curve in curves.items():
    print(f"{name}: {curve.sensitivity}")

# %%
# The released value is a function, with nothing in it but 26 coefficients. A part of its distance
# from the exact curve is not noise: polynomials flatten the peaks. Iterating them more often brings
# them back. It works on released values and so costs no privacy, but it lets through more noise.

grid = np.linspace(0, 1, 201)[:, None]
exact = priestley_chao(X, grid)
plain = bernstein.fit(np.zeros((1, 1)))
smooth = plain.evaluate(plain.coefficients(priestley_chao(X, plain.lattice_)), grid)
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.scatter(*X.T, s=6, color="0.7", label="records")
ax.plot(grid, exact, color="black", label="kernel regression, not private")
ax.plot(grid, smooth, color="black", linestyle=":", label="its approximation, not private")
for (name, curve), color in zip(curves.items(), ("C0", "C3"), strict=True):
    ax.plot(grid, curve.value.predict(grid), color=color, label=f"private, {name}")
ax.set(xlabel="x", ylabel="y", title="Priestley-Chao regression, epsilon 5, gamma 0.2")
ax.legend()
plt.show()

# %%
# Published, and here
# -------------------
# The records and the noise of the package came from R. What can be compared are the sizes.

differences = {
    name: np.abs(curve.value.predict(grid) - smooth).mean() for name, curve in curves.items()
}
law = ExponentialMechanism(epsilon=1.0).probabilities(counts, chosen.sensitivity.value)
best = LETTERS[np.argmax(counts)]
assert best == "e"
assert sampled.sensitivity.value < known.sensitivity.value
assert differences["public code, exact"] < differences["sup norm, dkw"]

compare(
    (
        "mean of 100 uniform numbers, epsilon 1: exact and private",
        "0.5343, 0.5244",
        f"{numbers.mean():.4f}, {known.value:.4f}",
        "other records; the noise is about 0.01 in both",
    ),
    (
        "sensitivity of that mean",
        "0.01 on paper",
        f"0.01; {sampled.sensitivity.value:.4f} sampled",
        "all but a share .1 of uniform pairs change it less",
    ),
    (
        "most frequent letter: exact and private",
        "e, e",
        f"{best}, {chosen.value}",
        f"at epsilon 1 the letter e has probability {max(law):.2f} here: theirs was lucky",
    ),
    (
        "regression: mean distance to the approximation without noise",
        "not stated",
        ", ".join(f"{name} {size:.3f}" for name, size in differences.items()),
        "the code releases few directions and decodes them",
    ),
)

# %%
# References
# ----------
# .. [1] Rubinstein and Aldà, "diffpriv: An R Package for Easy Differential Privacy", JMLR 18, 2018.
