"""Release: a released value with what was promised for it; to be read, summarized and saved."""

from __future__ import annotations

import html
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import estimator_html_repr

from skdp.accounting.tally import BudgetTotal
from skdp.card import model_card, together
from skdp.core.checks import check_count, warn
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.types import AxisLabels, Container, Estimator, Values
from skdp.folder import check_free, read_folder, write_folder
from skdp.functions.released_density import ReleasedDensity, misplaced, remark_on_density
from skdp.intervals import (
    FOR_CLASSIFIERS,
    FOR_REGRESSORS,
    MOST_NUMBERS,
    N_DRAWS,
    N_NOISES,
    Simulator,
    interval,
    kind_name,
)
from skdp.sensitivity.bounds import KnownSensitivity, said_of_gaps
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.summary import (
    ERR_TOGETHER,
    LIKE_THE_ORACLE,
    MORE_SHIFT,
    ReleaseSummary,
    flat_names,
    flat_numbers,
    remark_on_sign,
    two_digits,
)

CONTRADICTED = 5.0
"""Beyond so many standard deviations one must be told that the records are unlike the oracle's."""


@dataclass(frozen=True, repr=False)
class Release:
    """A released value with what was promised for it.

    Parameters
    ----------
    value : object
        The private value: a float array in the shape of the target's value, for the mechanisms
        that add noise; the response that was chosen, for those that choose; or what the target
        makes of it, such as a function.
    guarantee : PrivacyGuarantee
        The promise.
    sensitivity : SensitivityEstimate or KnownSensitivity
        The sensitivity that the noise was calibrated to.
    budget : BudgetTotal
        What this release and all earlier ones of its budget promise together.
    standard_errors : ndarray, dict of str to ndarray, or None, default=None
        As those of the plan, but larger where what was released contradicts the prior of a code.
    numbers : ndarray, dict of str to ndarray, or None, default=None
        What was released, by attribute and before any repair; None where a response was chosen.
    prior_errors : ndarray, dict of str to ndarray, or None, default=None
        The standard deviations that the prior of a public code gives to the same numbers; None
        without a code.
    plan : str, default=""
        The plan that was executed, in words.
    labels : dict of str to pair of lists of str or None, or None, default=None
        By attribute what the entries of its first and of its last axis are called, such as classes
        and columns; of a value that has no attributes under ``"value"``.
    simulator : Simulator or None, default=None
        Repeats the release in public, for intervals; None where a response was chosen.
    surprise : float of at least 0, default=0.0
        How many standard deviations, of the prior of a code and of its own error together, a
        released number is from the prior mean, at most: with a large one the private records are
        unlike the oracle's.
    surprising : str, default=""
        The name of that number, as in the summary.
    repaired : ndarray of shape (n_numbers,) or None, default=None
        The released numbers as they are in the model, where they were brought into range, such as a
        variance below 0; NaN where they are as released.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=1 / 100)
    >>> print(released.guarantee)
    epsilon=1 differential privacy, replace-one, n=100, sensitivity 0.01 asserted by the caller,
    this release alone: others of the same data add up, see skdp.accounting
    """

    value: Any
    guarantee: PrivacyGuarantee
    sensitivity: SensitivityEstimate | KnownSensitivity
    budget: BudgetTotal
    standard_errors: NDArray[np.float64] | Values | None = None
    numbers: NDArray[np.float64] | Values | None = None
    prior_errors: NDArray[np.float64] | Values | None = None
    plan: str = ""
    labels: AxisLabels | None = None
    simulator: Simulator | None = field(default=None, compare=False)
    surprise: float = 0.0
    surprising: str = ""
    repaired: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        is_estimator = isinstance(self.value, BaseEstimator)
        value = type(self.value).__name__ if is_estimator else repr(self.value)
        return f"Release of {value}: {self.guarantee}"

    def _repr_html_(self) -> str:
        is_estimator = isinstance(self.value, BaseEstimator)
        value = f"<pre>{html.escape(repr(self.value))}</pre>"
        shown = estimator_html_repr(self.value) if is_estimator else value
        return below_promise(shown, self.guarantee, self.budget)

    def summary(self) -> ReleaseSummary:
        """Tell the released numbers from their noise.

        Returns
        -------
        ReleaseSummary
            Every number beside its standard error.

        Raises
        ------
        TypeError
            If a response was chosen: there are no numbers.
        """
        if self.numbers is None:
            raise TypeError(
                "A summary is of released numbers. Here a response was chosen: see its 'value'."
            )
        values = flat_numbers(self.numbers)
        errors, learned = np.full(len(values), np.nan), np.ones(len(values))
        if self.standard_errors is not None:
            errors = flat_numbers(self.standard_errors)
            if self.prior_errors is not None:
                prior = flat_numbers(self.prior_errors)
                left = np.divide(errors, prior, out=np.ones_like(errors), where=prior > 0)
                learned = np.clip(1 - left**2, 0, 1)
                errors = np.where(self._are_fixed, np.nan, errors)
        names, said = flat_names(self.numbers, self.labels), [str(self.guarantee), self._warning]
        promise = "\n".join(filter(None, said))
        remarks = [remark_on_sign(self.numbers, self.labels)]
        if self.prior_errors is not None:
            mechanism = None if self.simulator is None else self.simulator.mechanism
            remarks.append(LIKE_THE_ORACLE)
            remarks += [MORE_SHIFT] * (getattr(mechanism, "shift", 0) < 1)
            remarks += [ERR_TOGETHER] * (len(values) > 1)
        if isinstance(self.value, ReleasedDensity):
            remarks.append(remark_on_density(self.value))
        gaps = said_of_gaps(self.sensitivity)
        remarks.append(f"If there were gaps: {gaps}." if gaps else "")
        remark = " ".join(filter(None, remarks))
        return ReleaseSummary(promise, names, values, errors, learned, self.repaired, remark)

    def predict_interval(
        self,
        X: Container,
        level: float = 0.9,
        *,
        n_draws: int | None = None,
        random_state: int | None = None,
    ) -> NDArray:
        """Return between what the exact model would predict, as far as the noise lets one know.

        See :meth:`PrivateEstimator.predict_interval` for what it means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        level : float in (0, 1), default=0.9
            How often the prediction of the exact model is inside, record by record.
        n_draws : int or None, default=None
            How often the release is simulated. With a public code each takes two fits to records of
            the oracle, unless there is a closed form or the release was loaded: as long as the plan
            took, or longer. None is 199, or as many as were saved.
        random_state : int or None, default=None
            Seed of the simulation, which is public. It has no part in what was saved. None takes
            what was simulated before, for any release of the plan; another seed simulates anew.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends. A simulated model that cannot predict, since a step refuses what
            noise made of one before it, might have said anything: too many make an end infinite.

        Raises
        ------
        TypeError
            If the value is no regressor.
        ValueError
            If `level` is not in (0, 1), there are too few draws for it, or there is a public code
            and no oracle to simulate with: the sensitivity was given as an estimate, or the release
            was saved without draws.

        See Also
        --------
        predict_stability : The same for classifiers.
        """
        self._check_is(is_regressor, "predict_interval", FOR_CLASSIFIERS)
        models = self._models("predict_interval", n_draws, random_state)
        outputs = np.full((len(models), *np.shape(self.value.predict(X))), np.nan)
        for output, predicted in zip(outputs, _predicted(models, X), strict=False):
            output[...] = predicted
        return interval(outputs, level)

    def predict_stability(
        self, X: Container, *, n_draws: int | None = None, random_state: int | None = None
    ) -> NDArray[np.float64]:
        """Return how likely the exact model predicts the same label, as far as the noise shows.

        See :meth:`PrivateEstimator.predict_stability` for what it means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        n_draws : int or None, default=None
            As for `predict_interval`.
        random_state : int or None, default=None
            As for `predict_interval`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Of the models that the exact one might have been, the share that predicts the label of
            the released one: near 1 where noise does not decide. One that cannot predict, since a
            step refuses what noise made of one before it, predicts no label.

        Raises
        ------
        TypeError
            If the value is no classifier.
        ValueError
            As `predict_interval`.
        """
        self._check_is(is_classifier, "predict_stability", FOR_REGRESSORS)
        models = self._models("predict_stability", n_draws, random_state)
        label = self.value.predict(X)
        same = np.zeros(np.shape(label))
        for predicted in _predicted(models, X):
            same += predicted == label
        return same / len(models)

    def might_have_been(
        self, *, n_draws: int | None = None, random_state: int | None = None
    ) -> list[Estimator]:
        """Return models that the exact one might have been, as far as the noise lets one know.

        Parameters
        ----------
        n_draws : int or None, default=None
            How many, as for `predict_interval`.
        random_state : int or None, default=None
            As for `predict_interval`.

        Returns
        -------
        list of estimators
            Of the kind of the value. Their spread is the error of the release.

        Raises
        ------
        TypeError
            If the value is no estimator.
        ValueError
            If there is a public code and no oracle to simulate with, as for `predict_interval`.
        """
        return self._models("might_have_been", n_draws, random_state)

    def value_interval(
        self,
        level: float = 0.9,
        *,
        n_draws: int | None = None,
        random_state: int | None = None,
    ) -> NDArray[np.float64]:
        """Return between what the exact numbers are, as far as the noise lets one know.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            How often an exact number is inside, one by one; with a public code, where the private
            records are like the oracle's, or as far from these as its `shift` allows for.
        n_draws : int or None, default=None
            How many simulated releases, as for `predict_interval`. Where these are of noise alone,
            without a public code, None takes 1,999, or fewer of more than 500 numbers, which takes
            some seconds. The ends of two calls then differ by a few percent: a seed repeats them.
        random_state : int or None, default=None
            As for `predict_interval`.

        Returns
        -------
        ndarray of shape (n_numbers, 2)
            Lower and upper ends, in the order of the summary. NaN where a number is the same in all
            public fits: it is released as that, and nothing is told of the exact one.

        Raises
        ------
        TypeError
            If a response was chosen.
        ValueError
            As `predict_interval`.
        """
        if n_draws is None and self.simulator is not None and self.simulator.is_of_noise_alone:
            size = 0 if self._as_released is None else self._as_released.size
            n_draws = min(N_NOISES, max(N_DRAWS, MOST_NUMBERS // max(1, size)))
        draws = self._values("value_interval", n_draws, random_state)
        ends = interval([np.ravel(each) for each in draws], level)
        ends[self._are_fixed] = np.nan
        return ends

    @property
    def _are_fixed(self) -> NDArray[np.bool_]:
        """Which numbers are the same in all public fits: the release says nothing of them."""
        if self.standard_errors is None or self.prior_errors is None:
            return np.zeros(0 if self.numbers is None else len(flat_numbers(self.numbers)), bool)
        return (flat_numbers(self.standard_errors) == 0) & (flat_numbers(self.prior_errors) == 0)

    def _models(self, owner: str, n_draws: int | None, random_state: int | None) -> list[Estimator]:
        values = self._values(owner, n_draws, random_state)
        assert self.simulator is not None  # or there were no values
        return [self.simulator.target.restore(each) for each in values]

    def _values(
        self, owner: str, n_draws: int | None, random_state: int | None
    ) -> NDArray[np.float64]:
        simulator, value = self.simulator, self._as_released
        if simulator is None or value is None:
            raise TypeError(
                f"{owner} is of released numbers. Here the value was chosen among responses, or "
                f"made by a target that could not be saved. Got {type(self.value).__name__}."
            )
        stated = None if self.standard_errors is None else flat_numbers(self.standard_errors)
        return simulator.might_have_been(value, stated, n_draws, random_state, owner)

    def _check_is(self, kind: Callable[[Estimator], bool], owner: str, otherwise: str) -> None:
        """Refuse another value than a classifier, or a regressor."""
        if not (hasattr(self.value, "predict") and kind(self.value)):
            raise TypeError(
                f"{owner} needs a released {kind_name(kind)}. Got {type(self.value).__name__}. "
                f"{otherwise}"
            )

    if not TYPE_CHECKING:  # for it, a name that is not there is an error

        def __getattr__(self, name: str) -> Any:
            """Point to the value for what it has."""
            hint = ""
            if not name.startswith("_") and hasattr(vars(self).get("value"), name):
                hint = f" It belongs to what was released: use .value.{name}."
            raise AttributeError(f"Release has no attribute {name!r}.{hint}")

    @property
    def _warning(self) -> str:
        contradicted = contradiction(self.surprise, self.surprising, self.guarantee.gamma)
        return " ".join(filter(None, (contradicted, misplaced(self.value))))

    @property
    def _as_released(self) -> NDArray[np.float64] | None:
        """The numbers in the shape of the target's value; None where a response was chosen."""
        return flat_numbers(self.numbers) if isinstance(self.numbers, dict) else self.numbers

    def save(self, folder: str | Path, *, n_draws: int = 0) -> None:
        """Write all that may be handed on to a folder, with a card that says what it is.

        Nothing private is in it, and of the oracle's records no more than single numbers that a
        public fit shows, such as the largest of a column. `release.joblib` is a pickle of this
        object, `release.json` the promise, the plan in words and the versions, for programs in any
        language, and `README.md` the same for people.

        Parameters
        ----------
        folder : str or path-like
            Made if it is not there. An earlier release in it is replaced, once the new one is
            written.
        n_draws : int, default=0
            How often the release of a public code is simulated now, such as 99, for
            `predict_interval` and `predict_stability` of what is loaded; 0 leaves these out. Each
            takes two fits to records of the oracle, unless there is a closed form. Without a code
            nothing need be simulated before.

        Raises
        ------
        ValueError
            If the folder holds something else, what was released holds a lambda or else cannot be
            written, or there is no oracle to simulate with: the sensitivity was given as an
            estimate.

        Warns
        -----
        UserWarning
            If a function or class of it was written in the script or notebook that runs.

        See Also
        --------
        skdp.load : Reads the folder.
        """
        check_count("n_draws", n_draws, "Release.save", at_least=0)
        folder = Path(folder)
        check_free(folder)
        _warn_of_script(self.value)
        simulator = self._kept_simulator(n_draws)
        facts = {
            "promise": str(self.guarantee),
            "guarantee": self.guarantee.to_dict(),
            "budget": asdict(self.budget),
            "plan": self.plan,
        }
        card = model_card(
            *(self.value, self.guarantee, self.budget),
            *(None if self.numbers is None else self.summary(), self.plan),
            warning=self._warning,
            is_ready=simulator is not None and simulator.is_ready,
        )
        write_folder(folder, replace(self, simulator=simulator), facts, card)

    def _kept_simulator(self, n_draws: int) -> Simulator | None:
        """What repeats the release without the oracle; None where it cannot be written."""
        value = self._as_released
        if self.simulator is None or value is None:
            return None
        kept = self.simulator.kept(value.shape, n_draws)
        try:
            pickle.dumps(kept)
        except Exception:  # a target of the user's own, which need not be written
            return None
        return kept


def _warn_of_script(value: object) -> None:
    """Point out functions that only the script or notebook knows in which they were written."""
    params = value.get_params() if hasattr(value, "get_params") else {}
    parts = {type(value).__name__: type(value)} | params
    partials = {name: each for name, each in params.items() if isinstance(each, partial)}
    parts |= {f"{name}.func": each.func for name, each in partials.items()}
    own = [name for name, each in parts.items() if getattr(each, "__module__", "") == "__main__"]
    if own:
        warn(
            f"What is saved holds {', '.join(own)} of this script or notebook, without which it "
            "cannot be loaded. Write it in a module that whoever loads it can import."
        )


def _predicted(models: list[Estimator], X: Container) -> Iterator[NDArray]:
    """Predict with each model that can."""
    for model in models:
        with suppress(ValueError):  # a step of it refuses what noise made of one before it
            yield model.predict(X)


def contradiction(surprise: float, name: str, gamma: float) -> str:
    """Say that the private records are unlike the oracle's, if they are."""
    if surprise <= CONTRADICTED:
        return ""
    seen = (
        f"{name} is {two_digits(surprise)} standard deviations from what public records would "
        "say, and of all numbers the farthest. What was not read off the records is the oracle's"
    )
    if not gamma:
        return f"The prior is far from the records: {seen}. The promise does not depend on it."
    return (
        f"What was released contradicts the oracle: {seen}, and gamma is about records like those, "
        "so the noise may be too small. Have all columns the same units and meaning? Take an "
        "oracle that is like the records."
    )


def load(folder: str | Path) -> Release:
    """Read what :meth:`Release.save` or :meth:`PrivateEstimator.save` wrote.

    Parameters
    ----------
    folder : str or path-like
        The folder. Reading it executes what is in its file, as with any pickle: load only what you
        trust.

    Returns
    -------
    Release
        The model is its `value`.

    Raises
    ------
    ValueError
        If the folder holds no release, or its file is not the one that was saved.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, load, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=1 / 100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.save(folder)
    ...     loaded = load(folder)
    >>> bool(loaded.value == released.value)
    True
    """
    loaded = read_folder(Path(folder))
    assert isinstance(loaded, Release)
    return loaded


def below_promise(shown: str, guarantee: PrivacyGuarantee, budget: BudgetTotal) -> str:
    """Show what was promised, alone and with the releases before it, above something in HTML."""
    promise = f"<strong>{html.escape(str(guarantee))}</strong>"
    said = html.escape(together(guarantee, budget))
    return f"<div><p>{promise}<br>{said}</p>{shown}</div>"
