"""Audit each release whose sensitivity is known on paper, on the worst pair that a search finds.

By mechanism: the share of the bound that the pair reaches, the exact privacy loss of Laplace and L2
Laplace noise on it (in integers, rounding included), and the epsilon that samples show.
It is 1, and above it nothing may be found with the noise that is due, and something must be with
half of it. Such an audit errs with probability 1e-4 at most.

Where half the noise is not found, ten times as many runs are made. Draws of L2 Laplace noise are
too slow for that, and its exact loss has to do.

Usage: python benchmarks/known_audit.py [--runs 8000] [--noise NAME ...]
"""

import argparse
import sys
import warnings

import numpy as np
from known_cases import exact_loss, norms, worst_pairs
from threadpoolctl import threadpool_limits

from skdp import GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism
from skdp.audit import audit_epsilon
from skdp.mechanisms.discrete import discrete_l2_laplace
from skdp.mechanisms.l2_laplace import l2_laplace_scale

MECHANISMS = {
    "Laplace": LaplaceMechanism(1.0),
    "L2 Laplace": L2LaplaceMechanism(1.0),
    "Gaussian": GaussianMechanism(1.0, 0.01),  # with a smaller delta more runs are needed
}
ALPHA = 1e-4


def lower_bound(mechanism, values, sensitivity, runs):
    """Return the epsilon that samples of the noise show, from the statistic that tells most."""

    def outputs(which, n, rng):
        if isinstance(mechanism, L2LaplaceMechanism):  # many at once
            lattice, scale = l2_laplace_scale(sensitivity, values[0].size, mechanism.epsilon)
            noise = discrete_l2_laplace(scale, values[0].size, rng, n)
            released = lattice.to_floats(lattice.to_integers(values[which]), noise)
        else:
            copies = np.broadcast_to(values[which], (n, values[0].size))
            released = mechanism.release(copies, sensitivity, rng)
        near, far = (norms(released - each, mechanism.order) for each in values)
        power = 2 if isinstance(mechanism, GaussianMechanism) else 1
        return np.round((far**power - near**power) / sensitivity**power, 9)

    claim = mechanism.guarantee()
    return audit_epsilon(
        outputs,
        [(0, 1)],
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        n_search=runs // 4,
        n_final=runs,
        alpha=ALPHA,
        method="pair" if claim.delta else "label",
        rng=0,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8000, help="of the test, a fourth to search")
    parser.add_argument("--noise", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    options = parser.parse_args()
    runs = options.runs
    warnings.simplefilter("ignore")  # scikit-learn's, of fits to few records
    failed = False
    for title in options.noise:
        mechanism = MECHANISMS[title]
        print(f"\n| {title} | share of bound | exact loss | found | with half the noise |")
        print("|---|---|---|---|---|")
        for name, plan, values in worst_pairs(mechanism):
            bound = plan.sensitivity.value
            share = np.linalg.norm(np.subtract(*values), mechanism.order) / bound
            loss = exact_loss(mechanism, values, bound)
            due, half = (lower_bound(mechanism, values, each, runs) for each in (bound, bound / 2))
            if not half.violated and mechanism.most_values is None:
                # the more numbers, the rarer are outputs that tell
                half = lower_bound(mechanism, values, bound / 2, 10 * runs)
            missed = not (half.violated or exact_loss(mechanism, values, bound / 2) > 1)
            shown = (share, loss, due.lower_bound, half.lower_bound)
            print(f"| {name} | {' | '.join(f'{number:.3f}' for number in shown)} |", flush=True)
            failed |= share > 1 or loss > 1 or due.violated or missed
    return int(failed)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        sys.exit(main())
