"""How much the output of an estimator depends on its released parameters.

With J the Jacobian of the output (decision function, probabilities, log-density, transformed
record or prediction) in the parameter vector v, a small change dv changes the output on a record
by a squared length of dv' J'J dv. The metric M is the mean of J'J over public records. It is taken
by finite differences around the public twin, which is exact where the output is linear in the
parameters, as for every linear model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

MAX_EVALUATED = 2000
"""Most parameters for which the output is evaluated once per parameter."""

# In the order of preference: the more finely graded an output is, the more it tells.
_OUTPUTS = ("decision_function", "predict_proba", "score_samples", "transform", "predict")

_STEP = 1e-5  # relative to the parameter: rounding and curvature both cost about so much


def output_metric(
    twin: Any,
    vector: NDArray[np.float64],
    restore: Callable[[NDArray[np.float64]], Any],
    X: Any,
) -> NDArray[np.float64] | None:
    """Estimate the metric of an estimator's output.

    Parameters
    ----------
    twin : estimator object
        Fitted on public records.
    vector : ndarray of shape (n_parameters,)
        Its parameters.
    restore : callable
        ``restore(vector)`` gives the estimator that has these parameters.
    X : container of public records
        Where the output is evaluated.

    Returns
    -------
    ndarray of shape (n_parameters, n_parameters) or None
        The metric; None if there are more than `MAX_EVALUATED` parameters, or the estimator has
        no output that changes with them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skdp.targets.parameters import ParameterTarget
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> twin = Ridge().fit(X, [0.0, 1.0])
    >>> target = ParameterTarget(Ridge(), "auto", twin)
    >>> target.output_metric(X).round(3)  # the mean of x x', with a 1 for the intercept
    array([[ 5.,  7.,  2.],
           [ 7., 10.,  3.],
           [ 2.,  3.,  1.]])
    """
    output = next((name for name in _OUTPUTS if hasattr(twin, name)), None)
    if output is None or len(vector) > MAX_EVALUATED:
        return None
    with np.errstate(all="ignore"):
        here = _evaluate(restore(vector), output, X)
        jacobian = np.empty((len(vector), here.size))
        for j, step in enumerate(_steps(vector)):
            moved = vector.copy()
            moved[j] += step
            jacobian[j] = (_evaluate(restore(moved), output, X) - here) / (moved[j] - vector[j])
        metric = jacobian @ jacobian.T / X.shape[0]
    return metric if np.isfinite(metric).all() and metric.any() else None


def _steps(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Steps relative to each parameter; one that is zero takes the typical size of the others."""
    sizes = np.abs(vector)
    typical = np.median(sizes[sizes > 0]) if sizes.any() else 1.0
    return _STEP * np.where(sizes > 0, sizes, typical)


def _evaluate(estimator: Any, output: str, X: Any) -> NDArray[np.float64]:
    values = getattr(estimator, output)(X)
    values = values.toarray() if sparse.issparse(values) else np.asarray(values)
    return values.astype(np.float64).ravel()
