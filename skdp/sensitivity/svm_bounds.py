"""Sensitivities of linear support vector machines, known on paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from skdp.core.checks import check_count, check_real, shown
from skdp.core.classes import public_name
from skdp.core.geometry import ROUND_UP
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.mean_bounds import PAIN_FREE
from skdp.sensitivity.preconditions import EstimatorRule

if TYPE_CHECKING:
    from sklearn.svm import SVC, LinearSVC

_UNIT = ((0.0, 1.0),)
_FREE, _PENALIZED = "sklearn.svm.SVC", "sklearn.svm.LinearSVC"
_FREE_NEEDS = (("kernel", "linear"), ("class_weight", None), ("max_iter", -1))
_PENALIZED_NEEDS = (
    ("loss", "hinge"),
    ("penalty", "l2"),
    ("class_weight", None),
    ("multi_class", "ovr"),  # the other one is another problem, for two classes too
)

_FLOAT32_KERNEL = 2.0**-22
"""libsvm keeps kernel values in single precision: four times the relative error of one."""


def linear_svm_l1(
    n_samples: int, n_features: int, C: float, *, tol: float = 1e-3, proof: str = "exchange"
) -> KnownSensitivity:
    """Bound the change of (w, b) of a linear support vector machine with a free intercept.

    This is ``SVC(kernel="linear")``, hinge loss, two classes, records in the unit cube. An
    intercept that is not penalized may jump from -1 to 1 when one record changes its label, so no
    bound below 2 can hold, whatever n; :func:`linear_svc_l1` has no such jump.

    Parameters
    ----------
    n_samples : int
        Number of records n.
    n_features : int
        Number of columns d.
    C : float
        As in scikit-learn: weight of one record. (The C of the paper is this C times n.)
    tol : float, default=1e-3
        The ``tol`` of the SVC. The solver stops there, and the bound pays for it; 0 is the exact
        minimizer.
    proof : {"exchange", "published"}, default="exchange"
        "exchange" is ``2 + 6 C d``, derived in the user guide. "published" is proposition 19 of
        [1]_, ``2 + 2 n C sqrt(d) + 4 C d``, never smaller for ``n >= sqrt(d)``.

    Returns
    -------
    KnownSensitivity
        The bound on the L1 norm of the change of (w, b).

    Raises
    ------
    ValueError
        If a number is out of range, the proof unknown, or the published bound is asked for
        with n below the square root of d, where we know of no proof.

    Notes
    -----
    The published proof bounds the linear kernel on the unit cube by sqrt(d) where it is at most d,
    and takes the bound on w from a machine without intercept. Its statement holds nevertheless
    for ``n >= sqrt(d)``, as it is implied by the smaller bound.

    References
    ----------
    .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
       ICML 2017, proposition 19 and appendix D.

    Examples
    --------
    >>> from skdp import linear_svm_l1
    >>> round(linear_svm_l1(1000, 8, C=3 / 1000, tol=0).value, 3)
    2.144
    >>> round(linear_svm_l1(1000, 8, C=3 / 1000, tol=0, proof="published").value, 3)
    19.067
    """
    check_count("n_samples", n_samples, "linear_svm_l1")
    check_count("n_features", n_features, "linear_svm_l1")
    check_real("C", C, "linear_svm_l1", 0.0)
    check_real("tol", tol, "linear_svm_l1", 0.0, closed="l")
    n, d = n_samples, n_features
    if proof == "exchange":
        exact, source = 2 + 6 * C * d, "exchange argument, user guide, 'Sensitivities on paper'"
    elif proof == "published" and n * n >= d:
        exact, source = 2 + 2 * n * C * math.sqrt(d) + 4 * C * d, f"{PAIN_FREE}, proposition 19"
    else:
        raise ValueError(
            "The 'proof' parameter of linear_svm_l1 must be 'exchange', or 'published' with "
            f"n_samples of at least sqrt(n_features). Got {shown(proof)} with n_samples={n} and "
            f"n_features={d}."
        )
    # L1 distance from what the solver returns to a minimizer, for each of the two fits.
    slack = tol + _FLOAT32_KERNEL * n * C * d if tol else 0.0
    solver = slack + 2 * math.sqrt(d * n * C * slack)
    return KnownSensitivity(
        ROUND_UP * (exact + 2 * solver),
        "l1",
        n,
        preconditions="both classes present",
        source=source,
        ranges=_UNIT * d,
        estimator=EstimatorRule(_FREE, _FREE_NEEDS, (("C", C), ("tol", tol))),
    )


def linear_svc_l1(
    n_samples: int,
    n_features: int,
    C: float,
    *,
    solver_error: float,
    intercept_scaling: float = 1.0,
) -> KnownSensitivity:
    """Bound the change of (w, b) of a linear support vector machine with a penalized intercept.

    This is ``LinearSVC(loss="hinge")``, two classes, records in the unit cube. The intercept is
    the weight of a constant column and is penalized like the others, so (w, b) is the minimizer of
    a strongly convex function and one record moves it by at most ``2 C (d + s^2)``, with s the
    `intercept_scaling`. That is far below :func:`linear_svm_l1`.

    Parameters
    ----------
    n_samples : int
        Number of records.
    n_features : int
        Number of columns d.
    C : float
        As in scikit-learn: weight of one record.
    solver_error : float
        L1 distance from the returned (w, b) to the minimizer that the solver may leave. The bound
        grows by twice that. It has no default, as ``LinearSVC.tol`` does not bound it; a ``tol``
        of 1e-10 with a ``max_iter`` large enough for it leaves far less than any noise.
    intercept_scaling : float, default=1.0
        As in scikit-learn; 0 stands for ``fit_intercept=False``.

    Returns
    -------
    KnownSensitivity
        The bound on the L1 norm of the change of (w, b).

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    The default loss of LinearSVC, the squared hinge, is not Lipschitz: this bound is not for it.

    Examples
    --------
    >>> from skdp import linear_svc_l1
    >>> round(linear_svc_l1(1000, 8, C=3 / 1000, solver_error=0).value, 6)
    0.054
    """
    check_count("n_samples", n_samples, "linear_svc_l1")
    check_count("n_features", n_features, "linear_svc_l1")
    check_real("C", C, "linear_svc_l1", 0.0)
    check_real("solver_error", solver_error, "linear_svc_l1", 0.0, closed="l")
    check_real("intercept_scaling", intercept_scaling, "linear_svc_l1", 0.0, closed="l")
    return KnownSensitivity(
        ROUND_UP * (2 * C * (n_features + intercept_scaling**2) + 2 * solver_error),
        "l1",
        n_samples,
        preconditions=(f"both classes present, a solver within {solver_error:g} of the minimizer"),
        source="strong convexity, user guide, 'Sensitivities on paper'",
        ranges=_UNIT * n_features,
        estimator=_penalized(C, intercept_scaling),
    )


def svm_l1(
    estimator: SVC | LinearSVC,
    n_samples: int,
    n_features: int,
    *,
    solver_error: float | None = None,
) -> KnownSensitivity:
    """Bound the change of (w, b) of a linear machine of scikit-learn, and check its parameters.

    Parameters
    ----------
    estimator : SVC or LinearSVC
        The machine as it will be fitted. Only its parameters are read.
    n_samples : int
        Number of records.
    n_features : int
        Number of columns.
    solver_error : float or None, default=None
        As for :func:`linear_svc_l1`, needed for a LinearSVC; an SVC has it from its ``tol``.

    Returns
    -------
    KnownSensitivity
        That of :func:`linear_svm_l1` or :func:`linear_svc_l1`.

    Raises
    ------
    TypeError
        If the estimator is not one of the two.
    ValueError
        If a parameter makes it another machine than the one of the bound.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from skdp import svm_l1
    >>> machine = LinearSVC(loss="hinge", C=0.003, tol=1e-10)
    >>> round(svm_l1(machine, n_samples=1000, n_features=8, solver_error=1e-6).value, 6)
    0.054002
    """
    kind = public_name(type(estimator))
    if kind not in (_FREE, _PENALIZED):
        raise TypeError(
            f"svm_l1 knows SVC and LinearSVC. Got {type(estimator).__name__}. "
            "Sample the sensitivity instead."
        )
    params = estimator.get_params()
    if kind == _FREE:
        bound = linear_svm_l1(n_samples, n_features, params["C"], tol=params["tol"])
    elif solver_error is None:
        raise ValueError("svm_l1 needs the 'solver_error' parameter for a LinearSVC. Got None.")
    else:
        scaling = params["intercept_scaling"] if params["fit_intercept"] else 0.0
        bound = linear_svc_l1(
            n_samples, n_features, params["C"], solver_error=solver_error, intercept_scaling=scaling
        )
    bound.for_estimator(estimator, "auto")
    return bound


def _penalized(C: float, intercept_scaling: float) -> EstimatorRule:
    if intercept_scaling == 0:
        return EstimatorRule(_PENALIZED, (*_PENALIZED_NEEDS, ("fit_intercept", False)), (("C", C),))
    return EstimatorRule(
        _PENALIZED, _PENALIZED_NEEDS, (("C", C), ("intercept_scaling", intercept_scaling))
    )
