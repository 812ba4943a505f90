"""The target: a function from a dataset to numbers, which is what gets released."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset, belongs_to
from skdp.core.default import CLASS_NAME
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.identity import Keyed, check_key
from skdp.core.metric import OutputMetric
from skdp.core.persons import Persons
from skdp.core.types import Container, Estimator, Named


class Target(Keyed, ABC):
    """What is evaluated and released: a function from a dataset to an array of floats.

    A target of your own inherits from this class and says how it is called. All else has a default.
    A plain function is wrapped in a :class:`FunctionTarget`.

    Attributes
    ----------
    description : str
        What is evaluated, in one line, for people. By default the name of the class.
    key : str or None
        A name for the target: an estimate of the sensitivity serves every target of the same key,
        whatever its attributes. Without one a target is known by its attributes and its class, if
        that is from an installed package or has an attribute ``__skdp_key__``, a string of yours
        that you change whenever you change its code.
    allow_nan : bool
        Whether entries of X may be missing. By default they may not.
    fits_estimator : bool
        Whether the target fits an estimator. One that does not is tried on made-up records before
        private ones, where its sensitivity is known on paper. By default it does not.
    sums_persons : bool
        Whether all records of persons are read, by a method `over_persons` where there is one;
        without, one of each is drawn.
    weighs_persons : bool
        Whether the records of a person then have weights, which are alike and sum to one.
    needs_labels : bool
        Whether no value exists where y lacks a public label. By default one does.
    is_mean : bool
        Whether the value is a mean over the records, or a smooth function of such means. A code is
        then learned from datasets of fewer records, since such values hardly differ from those of
        all, and changes go with one over their number. By default it is not. The promise does not
        depend on it.
    chooses : bool
        Whether `restore` takes the position of one of several responses. By default it takes
        numbers.
    released : str
        What a plan says is released, where standard errors of single numbers say little. By default
        empty.
    estimator : estimator object or None
        The estimator that is fitted, which gives a plan its title.
    public_fit : estimator object or None
        A fit to public records, which names the columns and classes of the numbers.
    y_range : (float, float) or None
        The public range of the responses, where one is declared.
    class_strata : {"classes", "labels"}
        The strata of pairs where classes are declared. By default "classes".
    n_beside : int
        How many of the last numbers change with any record, so that a change of these alone is no
        sign of a sensitivity. By default 0.
    n_fits : int or None
        Number of fits to private records; None, the default, for one evaluation.
    n_public_fits : int
        Number of fits to public records before a plan is made. By default 0.
    adds_noise : bool
        Whether a call takes the source of the noise too, as `noise`, and returns a noisy value,
        with the standard errors that `errors` says. By default the mechanism adds the noise.
    errors : ndarray of float or None
        The standard errors of a value that is noisy when it is returned.
    expected_score : ExpectedScore or None
        What a release may score, where the target says it. By default releases are simulated.
    within : ndarray of float or None
        A possible value, by which a release is rehearsed; None takes that of made-up records.

    See Also
    --------
    FunctionTarget : Makes a target of any function.
    release : Releases the value of a target.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Target
    >>> class Range(Target):
    ...     def __call__(self, X, *, seed):
    ...         return np.ptp(X, axis=0)
    >>> Range().description, Range()(np.array([[1.0], [3.0]]), seed=0)
    ('Range', array([2.]))
    """

    description: str = CLASS_NAME
    allow_nan: bool = False
    fits_estimator: bool = False
    sums_persons: bool = False
    weighs_persons: bool = False
    needs_labels: bool = False
    is_mean: bool = False
    chooses: bool = False
    released: str = ""
    estimator: Estimator = None
    public_fit: Estimator = None
    y_range: tuple[float, float] | None = None
    class_strata: str = "classes"
    n_beside: int = 0
    n_fits: int | None = None
    n_public_fits: int = 0
    adds_noise: bool = False
    errors: NDArray[np.float64] | None = None
    expected_score: Any = None
    within: NDArray[np.float64] | None = None

    # All that the values of a class of skdp depend on besides the dataset; None: every attribute.
    key_parts: Any = None

    @abstractmethod
    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Evaluate the target.

        Parameters
        ----------
        *dataset : X, X and y, or X, y and sample_weight
            The records. They may be written into.
        seed : int
            Where all randomness comes from: the two evaluations of a pair share it.

        Returns
        -------
        ndarray of float
            The value. Its shape does not depend on the records.
        """

    def restore(self, value: Any) -> object:
        """Turn the released value into what is handed out; by default it stays as it is.

        Parameters
        ----------
        value : ndarray of float, or int
            What the mechanism returns. Nothing else of the private data may be used.

        Returns
        -------
        object
            Such as an estimator.
        """
        return value

    def oracle(self, value: Any, promise: PrivacyGuarantee) -> Any:
        """Return an oracle of a released law, which carries its promise; by default none.

        Parameters
        ----------
        value : ndarray of float
            What was released.
        promise : PrivacyGuarantee
            What was paid for.

        Returns
        -------
        Oracle or None
            Of public records.
        """
        return None

    def with_noise(
        self, mechanism: Any, sensitivity: float, errors: NDArray[np.float64] | None
    ) -> Target:
        """Return a copy that knows the noise of the value that it restores; by default itself.

        Parameters
        ----------
        mechanism : Mechanism
            The noise.
        sensitivity : float
            The sensitivity that the noise was calibrated to.
        errors : ndarray of float or None
            The standard error of each number, in the shape of the value, if they are known.

        Returns
        -------
        Target
            This one, or a copy.
        """
        return self

    def by_name(self, value: NDArray[np.float64]) -> Named:
        """Name the numbers of a value, and their entries; by default they have no names.

        Parameters
        ----------
        value : ndarray of float
            In the shape of the target's value.

        Returns
        -------
        numbers : ndarray or dict of str to ndarray
            The same numbers; an array is called ``"value"``.
        labels : dict of str to pair of lists of str or None, or None
            By name the labels along the first and along the last axis. None takes the columns and
            classes of the released estimator.
        """
        return value, None

    def output_metric(self, *records: Container) -> OutputMetric | None:
        """Measure how much the output depends on each number, for learning a code.

        Parameters
        ----------
        *records : as in a call
            Records of the oracle.

        Returns
        -------
        ndarray of shape (d, d) or (d,), LocalMetric, KnownMetric or None
            The squared change of the output as a quadratic form, or its diagonal. None, the
            default, where it is not known.
        """
        return None

    def closed_form(self, *records: Container) -> Callable[..., NDArray[np.float64]] | None:
        """Return what each record adds, where the value is a sum over the records.

        Parameters
        ----------
        *records : as in a call
            The ``n_samples + 1`` public records of one pair.

        Returns
        -------
        callable or None
            ``rows(*dataset)`` returns one row for each record of any dataset. The sum of the rows
            of `n_samples` records must equal a call to 1e-8. An oracle of independent records then
            makes a pair of two records. None, the default, where there are no such rows.
        """
        return None

    def check_oracle(self, *records: Container) -> None:
        """Raise ValueError if the records of a pair do not suit the target; by default all do."""

    def warning(self, n_samples: int) -> str:
        """Return a warning for the plan of `n_samples` records; by default there is none."""
        return ""

    def remark(self, restored: object) -> str:
        """Return a warning that goes with a restored value; by default there is none."""
        return ""

    @property
    def light(self) -> Target:
        """A target of nearly the same law that is cheaper to simulate; by default this one."""
        return self


def values_of(
    target: Target, datasets: Iterable[Dataset | Persons], seed: int
) -> tuple[NDArray[np.float64], ...]:
    """Evaluate a target with one seed on some datasets."""
    values = []
    for dataset in datasets:
        value = value_of(target, dataset, seed)
        check_unlabeled(value, target.description)
        values.append(np.array(value))  # a copy: the next may be in its place
    return tuple(values)


def value_of(
    target: Target, dataset: Dataset | Persons, seed: int, **noise: Any
) -> NDArray[np.float64]:
    """Evaluate a target on records, or on persons."""
    if isinstance(dataset, Persons):
        return over_persons(target, *dataset.rows.parts, counts=dataset.counts, seed=seed, **noise)
    return target(*dataset.parts, seed=seed, **noise)


def over_persons(
    target: Any, *rows: Container, counts: NDArray[np.intp], seed: int, **noise: Any
) -> NDArray[np.float64]:
    """Evaluate a target on all rows of persons, with its own method where it has one."""
    if hasattr(target, "over_persons"):
        return target.over_persons(*rows, counts=counts, seed=seed, **noise)
    dataset = Dataset(*rows)
    if target.weighs_persons:
        dataset = dataset._replace(sample_weight=np.repeat(1 / counts, counts))
    return target(*dataset.parts, seed=seed)


def replaces(target: Target, name: str) -> bool:
    """Return whether a target has something of its own in the place of a default."""
    return inspect.getattr_static(target, name) is not vars(Target)[name]


class FunctionTarget(Target):
    """A Python function as a target.

    A function of an installed package is known by its name and the version of the package. Give any
    other one a `key` to use its estimates and its pairs again, or to execute its plans in another
    process.

    Parameters
    ----------
    function : callable
        ``function(X)`` or ``function(X, y)``, returning a number or an array of fixed shape. When
        it has a parameter `random_state`, it is given an integer there, the same for both
        evaluations of a pair.
    key : str or None, default=None
        A name for the function. An estimate serves every function of the same key, so whoever
        changes the function must change its key.

    Raises
    ------
    TypeError
        If `function` cannot be called or is a target, or `key` is no string.
    ValueError
        If `key` is empty.

    See Also
    --------
    skdp.release : Releases the value.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import FunctionTarget
    >>> FunctionTarget(np.mean)(np.array([1.0, 2.0]), seed=0)
    array(1.5)
    >>> FunctionTarget(lambda X: np.mean(X), key="my-mean-v1").key
    'my-mean-v1'
    """

    allow_nan = True  # np.nanmean wants records with gaps; a value that is not finite fails anyway

    def __init__(self, function: Callable, *, key: str | None = None):
        if not callable(function):
            raise TypeError(
                "The 'target' must be a function of a dataset, function(X) or function(X, y). "
                f"Got an object of type {type(function).__name__}."
            )
        if hasattr(function, "restore") or hasattr(function, "description"):  # which would be lost
            raise TypeError(
                "The 'target' must be a plain function, or inherit from skdp.Target. Got a "
                f"{type(function).__name__} with a 'restore' or a 'description' of its own."
            )
        self.function = function
        self.description = _name_of(function)
        if key is not None:
            self.key = check_key(key, "FunctionTarget")
        self._takes_seed = False
        with suppress(TypeError, ValueError):  # some builtins have no signature
            self._takes_seed = "random_state" in inspect.signature(function).parameters

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Evaluate the function and return its value as floats."""
        return as_numbers(self._call(*dataset, seed=seed), self.description)

    def _call(self, *dataset: Container, seed: int) -> Any:
        return self.function(*dataset, **({"random_state": seed} if self._takes_seed else {}))


class ValueFormError(TypeError):
    """A target returned something else than an array of numbers of the shape that is asked for."""


class LabeledValueError(ValueFormError):
    """A target returned numbers with labels: which there are, and their order, may be private."""


def as_numbers(value: object, description: str) -> NDArray[np.float64]:
    """Copy a value, as a function may use one array again; refuse what is no array of numbers."""
    check_unlabeled(value, description)
    kind = type(value).__name__
    with suppress(TypeError, ValueError):  # what is no array of numbers is refused below
        if value is not None:  # which numpy would take for a number that is missing
            return np.array(value, dtype=np.float64)
    raise ValueFormError(
        f"The target {description} returned a {kind} that is no number and no array of numbers. "
        "Return one array, such as np.histogram(...)[0], or np.concatenate of several."
    )


def check_unlabeled(value: object, description: str) -> None:
    """Refuse a series, a frame or a dict, or a list of them: only numbers are released."""
    parts = value if isinstance(value, list | tuple) else [value]
    for each in {type(part): part for part in parts}.values():
        if isinstance(each, dict) or belongs_to(each, "pandas", "polars"):
            library = type(each).__module__.partition(".")[0]
            kind = f"{library}.{type(each).__name__}".removeprefix("builtins.")
            raise LabeledValueError(
                f"The target {description} returned a {kind}. Only numbers are released, so it "
                "must return them without labels: which labels there are, and in which order, may "
                "tell of the records. Return an array in an order that is fixed beforehand, such "
                "as value.reindex(public_labels, fill_value=0).to_numpy(), or "
                "[value[label] for label in public_labels]."
            )


def is_auto(release: object) -> bool:
    """Return whether the catalog decides what is released of an estimator."""
    return isinstance(release, str) and release == "auto"


def as_target(target: Target | Callable) -> Target:
    """Return `target` itself when it is one, else the function wrapped."""
    return target if isinstance(target, Target) else FunctionTarget(target)


def as_function_target(function: Callable) -> FunctionTarget:
    """Return a function in a target, and a FunctionTarget, which may bring its key, as it is."""
    return function if isinstance(function, FunctionTarget) else FunctionTarget(function)


_SCRIPTS = ("__main__", "__mp_main__")  # the second is the first in a spawned process


def _name_of(function: Callable) -> str:
    """Return what people call a function, also one that was given some arguments."""
    while isinstance(function, functools.partial):
        function = function.func
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__name__", type(function).__name__)
    return name if module in _SCRIPTS else f"{module}.{name}"
