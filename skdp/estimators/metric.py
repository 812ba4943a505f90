"""The effect of released parameters on the output of an estimator.

With J the Jacobian of the output (decision function, probabilities, log-density, transformed record
or prediction) in the parameter vector v, a small change dv changes the output on a record by a
squared length of dv' J'J dv. The metric M is the mean of J'J over public records, from finite
differences around the public fit. They are exact where the output is linear in the parameters, as
for every linear model. Elsewhere the metric holds near the public fit only, so its off-diagonal
entries are halved: no direction then counts less than half of what its parts do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.base import is_regressor

from skdp.core.dataset import n_records
from skdp.core.metric import LocalMetric
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.members import last_step
from skdp.estimators.packing import flat

MAX_EVALUATED = 2000
"""Largest number of parameters for which the output is evaluated once per parameter."""

# Methods in the order of preference; labels and clusters change in jumps and do not help.
_OUTPUTS = ("decision_function", "predict_proba", "score_samples", "transform")

_STEP = 1e-5  # step relative to the parameter, which balances rounding and curvature
_KEPT = 0.5  # share of off-diagonal entries that stays where the output is not linear


def output_metric(
    public_fit: Estimator, vector: Matrix, restore: Callable[[Matrix], Estimator], X: Container
) -> Matrix | LocalMetric | None:
    """Estimate the metric of an estimator's output; None if no output has derivatives."""
    if len(vector) > MAX_EVALUATED:
        return None
    outputs = (*_OUTPUTS, "predict") if is_regressor(public_fit) else _OUTPUTS

    def smooth(values: Matrix) -> Estimator:
        """Restore, without a refit to labels, which change in jumps."""
        released = restore(values)
        model = last_step(released)
        if getattr(model, "refit_on", None) is not None:
            model.set_params(refit_on=None).derive()
        return released

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # no fit may have such parameters
        released = smooth(vector)
        output = next((name for name in outputs if _gives(released, name, X)), None)
        if output is None:
            return None
        here = _evaluate(released, output, X)
        jacobian = np.empty((len(vector), here.size))
        for j, step in enumerate(_steps(vector)):
            moved = vector.copy()
            moved[j] += step
            jacobian[j] = (_evaluate(smooth(moved), output, X) - here) / (moved[j] - vector[j])
        metric = jacobian @ jacobian.T / n_records(X)
        far = _evaluate(smooth(2 * vector), output, X)
        straight = here + vector @ jacobian
        linear = np.allclose(far, straight, rtol=1e-4, atol=1e-4 * np.ptp(here))
    if not (np.isfinite(metric).all() and metric.any()):
        return None
    if linear:
        return metric
    return LocalMetric(_KEPT * metric + (1 - _KEPT) * np.diag(np.diag(metric)))


def _steps(vector: Matrix) -> Matrix:
    """Return steps relative to each parameter, or to the median size for one that is zero."""
    sizes = np.abs(vector)
    typical = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    return _STEP * np.where(sizes > 0, sizes, typical)


def _evaluate(estimator: Estimator, output: str, X: Container) -> Matrix:
    values = getattr(estimator, output)(X)
    return flat(values.toarray() if sparse.issparse(values) else values)


def _gives(estimator: Estimator, output: str, X: Container) -> bool:
    """Return whether a released estimator has this output, in numbers."""
    try:
        _evaluate(estimator, output, X)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return False
    return True
