"""Timings, peak memory and ratios of the sampler, one case per class of target."""

import warnings

from threadpoolctl import threadpool_limits

from .cases import CASES, density, loop, sample, sample_pairs

NAMES = [name for name in CASES if "large" not in name and "64" not in name]


class Sampling:
    """A release with gamma = .05, and a pair in units of that of the plain loop."""

    params = tuple(NAMES)
    param_names = ("target",)

    def setup(self, name):
        """Make the case, and pay for what is loaded once."""
        warnings.simplefilter("ignore")  # of fits that need not converge here
        self.limits = threadpool_limits(limits=1)
        self.case = CASES[name]()
        sample_pairs(self.case, 10)

    def teardown(self, name):
        """Give the other cores back."""
        self.limits.unregister()

    def time_promise(self, name):
        """Sample until gamma = .05 is promised."""
        sample(self.case, gamma=0.05)

    def track_ratio(self, name):
        """Compare the seconds per pair with those of the loop, in turns."""
        case = self.case
        ratios = []
        for seed in range(3):
            fast = sample_pairs(case, case.n_pairs, seed) / case.n_pairs
            ratios.append(loop(case, case.n_loop, seed) / case.n_loop / fast)
        return sorted(ratios)[1]

    track_ratio.unit = "times"


class Memory:
    """Peak memory of the process, which may not grow with the number of pairs."""

    params = (500, 50_000)
    param_names = ("n_pairs",)

    def peakmem_pairs(self, n_pairs):
        """Sample pairs of a kernel density."""
        sample_pairs(density(), n_pairs)
