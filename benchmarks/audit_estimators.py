"""Audits of every estimator that can be released, in the code that is learned for it.

Run ``python benchmarks/audit_estimators.py`` (ten minutes), or with the names of classes; it fails
if anything is found. The configurations and records are those of the tests.

Each estimator is planned with claims of 2, and two things are audited, at alpha = 1e-4 each:

- *promise*: fresh pairs of the oracle. The promise leaves room for a share gamma of them.
- *noise*: the pair of these whose values differ most, with noise calibrated to this difference
  exactly, which leaves no room, and with shares of it. Without the decoder, which only hides.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # for tests

from skdp import (
    GaussianMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
)
from skdp.audit import audit_release
from skdp.audit.estimator import exceedance_p_value
from skdp.core.dataset import neighboring_pair
from skdp.oracles.drawing import draw
from tests.estimator_cases import SUPPORTED, Case

MECHANISMS = {"Laplace": LaplaceMechanism(2.0), "Gaussian": GaussianMechanism(2.0, 1e-3)}
SHARES = (1.0, 0.8, 0.65, 0.5)
ALPHA, GAMMA, N_PAIRS = 1e-4, 0.2, 5


def audit(case: Case, name: str) -> tuple[str, int, float, list[float]]:
    """Return the coordinates, pairs beyond the claim, their p-value and a bound a share."""
    warnings.simplefilter("ignore")  # of fits to few records
    public, private = case.datasets()
    with threadpool_limits(1):
        sampler = SensitivitySampler(PublicDataOracle(*public), gamma=GAMMA, random_state=0)
        plan = PrivateEstimator(case.make(), mechanism=MECHANISMS[name], sensitivity=sampler).plan(
            len(private[0]), like=private
        )
        values = []
        for seed in range(N_PAIRS):
            rng = np.random.default_rng([15, seed])
            records = draw(plan.oracle, len(private[0]) + 1, rng, schema=plan.schema)
            pair = neighboring_pair(records, int(rng.integers(len(private[0]))))
            values.append([plan.target(*dataset.parts, seed=seed) for dataset in pair])
    geometry = plan.mechanism.geometry
    code = geometry.code
    coordinates = values
    if code is not None:
        coordinates = [[code.forward(value) for value in pair] for pair in values]
    norms = [geometry.distance(*pair) for pair in values]
    plain, worst = clone(MECHANISMS[name]).set_params(code=None), int(np.argmax(norms))

    def bound(pair, size, n_final):
        options = {"stacked": True, "alpha": ALPHA, "rng": 0, "n_search": n_final // 4}
        return audit_release(*pair, plain, size, n_final=n_final, **options).lower_bound

    lower = [bound(pair, plan.sensitivity.value, 2000) for pair in coordinates]
    exceeding = sum(each > plain.epsilon for each in lower)
    n_calibrating = len(plan.sensitivity.norms)
    p_value = exceedance_p_value(exceeding, N_PAIRS, GAMMA, n_calibrating, ALPHA)
    bounds = [bound(coordinates[worst], share * norms[worst], 20_000) for share in SHARES]
    kind = "values" if code is None else "code"
    return f"{np.size(coordinates[0][0])} numbers of the {kind}", exceeding, p_value, bounds


def unless_refused(case: Case, name: str) -> tuple[str, int, float, list[float]] | str:
    """Do the same, or return why nothing is released."""
    try:
        return audit(case, name)
    except ValueError as refusal:
        return str(refusal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="classes; all by default")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="one classifier")
    options = parser.parse_args()
    options.names = ["GaussianNB"] if options.small else options.names
    cases = [case for case in SUPPORTED if case.name in (options.names or {case.name})]
    work = [(case, name) for name in MECHANISMS for case in cases]
    results = Parallel(n_jobs=options.n_jobs, return_as="generator")(
        delayed(unless_refused)(case, name) for case, name in work
    )
    found: dict[str, Counter] = {name: Counter() for name in MECHANISMS}
    print(f"pairs beyond the claim, p-value; bounds with shares {SHARES} of the noise")
    for (case, name), result in zip(work, results, strict=True):
        if isinstance(result, str):
            print(f"{name:9s}{case.name:30s}refused: {result[:70]}", flush=True)
            found[name]["refused"] += 1
            continue
        kind, exceeding, p_value, bounds = result
        epsilon = MECHANISMS[name].epsilon
        found[name]["the promise"] += p_value < ALPHA
        found[name].update(
            {share: int(lower > epsilon) for share, lower in zip(SHARES, bounds, strict=True)}
        )
        shown = " ".join(f"{lower:5.2f}" for lower in bounds)
        print(f"{name:9s}{case.name:30s}{kind:12s}{exceeding} {p_value:7.1e}  {shown}", flush=True)
    for name, counts in found.items():
        print(f"{name}: violations among {len(cases)} estimators: {dict(counts)}")
    sys.exit(int(any(counts["the promise"] or counts[1.0] for counts in found.values())))


if __name__ == "__main__":
    main()
