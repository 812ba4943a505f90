"""Release: a released value with its promise, its summary and its intervals."""

from __future__ import annotations

import html
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import estimator_html_repr

from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import check_count
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.types import AxisLabels, Container, Estimator, Values
from skdp.functions.released_density import ReleasedDensity, remark_on_density
from skdp.results.card import together
from skdp.results.folder import check_free, read_folder, write_folder
from skdp.results.intervals import N_DRAWS, Simulator, interval
from skdp.results.names import flat_names, flat_numbers, positive_class
from skdp.results.report import PrivacyReport, make_report
from skdp.results.summary import MOST_ROWS_OF_CARD, ReleaseSummary
from skdp.results.writing import two_digits
from skdp.sensitivity.bounds import KnownSensitivity, said_of_gaps
from skdp.sensitivity.estimate import SensitivityEstimate

CONFLICT = 5.0  # warn of a number that is more standard deviations from its prior mean

OF_NOISE = "Standard errors measure the noise alone, not the sampling of the records."
OF_CODE = (
    "Standard errors suppose records like the public ones, up to the `shift` of the mechanism; "
    "what is not from your data is from public fits."
)

# Simulated releases of noise alone: at most so many, of a million numbers in all.
N_NOISES, MOST_NUMBERS = 1999, 10**6


@dataclass(frozen=True, repr=False)
class Release:
    """A released value with its promise.

    Parameters
    ----------
    value : object
        The released array, the chosen response, or the model that was made of released numbers.
    guarantee : PrivacyGuarantee
        The promise.
    sensitivity : SensitivityEstimate or KnownSensitivity
        The sensitivity that the noise was calibrated to.
    budget : BudgetTotal
        The promise of this release and all earlier ones of its budget together.
    standard_errors : ndarray, dict of str to ndarray, or None, default=None
        Those of the plan, but larger where the released numbers contradict the prior of a code.
    numbers : ndarray, dict of str to ndarray, or None, default=None
        The released numbers, by attribute and before any repair. None for a chosen response.
    prior_errors : ndarray, dict of str to ndarray, or None, default=None
        Standard deviations of the numbers under the prior of a public code. None without a code.
    plan : str, default=""
        The text of the plan that was executed.
    labels : dict of str to pair of lists of str or None, or None, default=None
        By attribute the names along its first and along its last axis, such as classes and columns.
    simulator : Simulator or None, default=None
        Repeats the release in public, for intervals. None for a chosen response.
    prior_conflict : float of at least 0, default=0.0
        The largest distance of a released number from its prior mean, in standard deviations of
        the prior and of the error together. If large, the records are unlike the oracle's.
    warning : str, default=""
        A warning, such as of a conflict with the prior.
    repaired : ndarray of shape (n_numbers,) or None, default=None
        The numbers in the model that were brought into range. NaN for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=1 / 100)
    >>> print(released.guarantee)
    Differential privacy: epsilon=1
      Replacing one of 100 records changes the probability of any result by a factor
      of at most 2.72.
      It rests on: sensitivity 0.01 asserted by the caller.
      Other releases of the same data add up: see the budget.
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
    prior_conflict: float = 0.0
    warning: str = ""
    repaired: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        is_estimator = isinstance(self.value, BaseEstimator)
        value = type(self.value).__name__ if is_estimator else repr(self.value)
        return f"Release of {value}: {self.guarantee.short}"

    def _repr_html_(self) -> str:
        is_estimator = isinstance(self.value, BaseEstimator)
        value = f"<pre>{html.escape(repr(self.value))}</pre>"
        return below_promise(self, estimator_html_repr(self.value) if is_estimator else value)

    def summary(self) -> ReleaseSummary:
        """Show each released number beside its standard error.

        Returns
        -------
        ReleaseSummary
            A text, a table in a notebook, or a data frame.

        Raises
        ------
        TypeError
            If a response was chosen: there are no numbers.
        """
        if self.numbers is None:
            raise TypeError(
                "A Release has a summary where it released numbers. Here a response was chosen: "
                "see its 'value'."
            )
        values = flat_numbers(self.numbers)
        errors, learned = np.full(len(values), np.nan), np.ones(len(values))
        if self.standard_errors is not None:
            errors = flat_numbers(self.standard_errors)
        if self.standard_errors is not None and self.prior_errors is not None:
            prior = flat_numbers(self.prior_errors)
            left = np.divide(errors, prior, out=np.ones_like(errors), where=prior > 0)
            learned = np.clip(1 - left**2, 0, 1)
            errors = np.where(self._are_fixed, np.nan, errors)
        remarks = [OF_NOISE if self.prior_errors is None else OF_CODE]
        if isinstance(self.value, ReleasedDensity):
            remarks.append(remark_on_density(self.value))
        gaps = said_of_gaps(self.sensitivity)
        remarks += [f"If there were gaps: {gaps}."] * bool(gaps)
        return ReleaseSummary(
            "\n".join(filter(None, (str(self.guarantee), self.warning))),
            *(flat_names(self.numbers, self.labels), values, errors, learned, self.repaired),
            " ".join(filter(None, remarks)),
            self._title(),
        )

    def _title(self) -> str:
        """Name the model, and the class that a positive coefficient speaks for."""
        if not isinstance(self.value, BaseEstimator) or self.numbers is None:
            return ""
        last = self.value.steps[-1][1] if hasattr(self.value, "steps") else self.value
        return f"{type(last).__name__}{positive_class(self.numbers, self.labels)}"

    def predict_interval(
        self,
        X: Container,
        level: float = 0.9,
        *,
        n_draws: int | None = None,
        random_state: int = 0,
    ) -> NDArray:
        """Bound the prediction of the exact model, which a release without noise would give.

        The interval shows how uncertain the noise makes a prediction. It is no interval for y, and
        costs no privacy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        level : float in (0, 1), default=0.9
            How often the prediction of the exact model is inside, record by record, over many
            releases: the records of one release err together.
        n_draws : int or None, default=None
            Number of simulated releases. None takes 199, or as many as were saved. With a public
            code each takes two fits to records of the oracle, unless there is a closed form.
            Further calls use them again.
        random_state : int, default=0
            Seed of the simulation, which is public. Draws that were saved do not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends. A simulated model that cannot predict, because a step refuses
            noisy input, might predict anything: too many of them make an end infinite.

        Raises
        ------
        TypeError
            If the value is no regressor.
        ValueError
            If `level` is not in (0, 1), there are too few draws for it, or there is a public code
            and neither an oracle to simulate with nor draws that were saved.

        Notes
        -----
        Without a public code the level is that over releases of any one dataset; with a code, over
        datasets of the oracle, and the `shift` of the mechanism makes room for others. It holds for
        predictions that are linear in the released numbers, before repairs, and nearly for others.
        A BernsteinTransformer with ``order="auto"`` would smooth less without noise: of level .9,
        measured on average in .74 to .99 of cases, at the worst points in a quarter.
        """
        self._check_is(is_regressor, "predict_interval")
        models = self.plausible_models(n_draws=n_draws, random_state=random_state)
        outputs = np.full((len(models), *np.shape(self.value.predict(X))), np.nan)
        for output, predicted in zip(outputs, _predicted(models, X), strict=False):
            output[...] = predicted
        return interval(outputs, level)

    def predict_stability(
        self, X: Container, *, n_draws: int | None = None, random_state: int = 0
    ) -> NDArray[np.float64]:
        """Estimate how likely the exact model predicts the same label as the released one.

        The result is no probability of the class: it shows how uncertain the noise makes a label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        n_draws : int or None, default=None
            As for `predict_interval`.
        random_state : int, default=0
            As for `predict_interval`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The share of plausible models that predict the label of the released one. A model that
            cannot predict counts as one that predicts another label.
        """
        self._check_is(is_classifier, "predict_stability")
        models = self.plausible_models(n_draws=n_draws, random_state=random_state)
        label = self.value.predict(X)
        same = np.zeros(np.shape(label))
        for predicted in _predicted(models, X):
            same += predicted == label
        return same / len(models)

    def plausible_models(
        self, *, n_draws: int | None = None, random_state: int = 0
    ) -> list[Estimator]:
        """Draw models that the exact one may be, given the noise.

        Parameters
        ----------
        n_draws : int or None, default=None
            Number of models, as for `predict_interval`.
        random_state : int, default=0
            As for `predict_interval`.

        Returns
        -------
        list of estimators
            Of the kind of the value. Their spread is the error of the release.
        """
        values = self._plausible_values(n_draws, random_state)
        assert self.simulator is not None  # or there were no values
        return [self.simulator.target.restore(each) for each in values]

    def value_interval(
        self, level: float = 0.9, *, n_draws: int | None = None, random_state: int = 0
    ) -> NDArray[np.float64]:
        """Bound the exact numbers, given the noise.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            How often an exact number is inside, one by one; with a public code, where the private
            records are like the oracle's, or as far from these as its `shift` allows for.
        n_draws : int or None, default=None
            As for `predict_interval`. Without a public code None is 1,999, or fewer for more than
            500 numbers, which takes some seconds.
        random_state : int, default=0
            As for `predict_interval`.

        Returns
        -------
        ndarray of shape (n_numbers, 2)
            Lower and upper ends, in the order of the summary. NaN where a number is the same in all
            public fits: it is released as it is there, which tells nothing of the exact one.
        """
        if n_draws is None and self.simulator is not None and self.simulator.is_of_noise_alone:
            size = 0 if self._as_released is None else self._as_released.size
            n_draws = min(N_NOISES, max(N_DRAWS, MOST_NUMBERS // max(1, size)))
        draws = self._plausible_values(n_draws, random_state)
        ends = interval(draws.reshape(len(draws), -1), level)
        ends[self._are_fixed] = np.nan
        return ends

    @property
    def _are_fixed(self) -> NDArray[np.bool_]:
        """Mask of the numbers that are the same in all public fits."""
        if self.standard_errors is None or self.prior_errors is None:
            return np.zeros(0 if self.numbers is None else len(flat_numbers(self.numbers)), bool)
        return (flat_numbers(self.standard_errors) == 0) & (flat_numbers(self.prior_errors) == 0)

    @property
    def _as_released(self) -> NDArray[np.float64] | None:
        """The numbers in the shape of the target's value; None where a response was chosen."""
        return flat_numbers(self.numbers) if isinstance(self.numbers, dict) else self.numbers

    def _plausible_values(self, n_draws: int | None, random_state: int) -> NDArray[np.float64]:
        simulator, value = self.simulator, self._as_released
        if simulator is None or value is None:
            raise TypeError(
                "A Release has intervals where it released numbers. Here a response was chosen, or "
                f"the target could not be saved. Got {type(self.value).__name__}."
            )
        if n_draws is not None:
            check_count("n_draws", n_draws, "Release")
        stated = None if self.standard_errors is None else flat_numbers(self.standard_errors)
        return simulator.plausible_values(value, stated, n_draws, random_state)

    def _check_is(self, is_kind: Callable[[Estimator], bool], owner: str) -> None:
        if not (hasattr(self.value, "predict") and is_kind(self.value)):
            raise TypeError(
                "predict_interval needs a released regressor, and predict_stability a released "
                f"classifier. Got {type(self.value).__name__} in {owner}."
            )

    def save(self, folder: str | Path, *, n_draws: int = 0) -> None:
        """Write the release to a folder that may be handed on, with a card for its readers.

        The folder holds nothing private, and of the oracle's records only single numbers that a
        public fit shows, such as the largest of a column. `release.joblib` is a pickle of this
        object. `release.json` has the promise, the plan and the versions for programs, and
        `README.md` for people. A model without parts of skdp is also written alone: as
        `estimator.skops`, which runs no code when it is read, where skops is installed and can
        write it, else as `estimator.joblib`.

        Parameters
        ----------
        folder : str or path-like
            The folder, which is made if it is not there. An earlier release in it is replaced,
            once the new one is written.
        n_draws : int, default=0
            Number of releases of a public code to simulate now, such as 99, so that the loaded
            release has intervals. 0 leaves them out. See `predict_interval`.

        Raises
        ------
        ValueError
            If the folder holds something else, the value holds a lambda or cannot be written for
            another reason, or there is no oracle to simulate with.

        Warns
        -----
        UserWarning
            If the value holds a function or class of the script or notebook that runs.
        """
        check_count("n_draws", n_draws, "Release.save", at_least=0)
        folder = Path(folder)
        check_free(folder)
        value, simulator = self._as_released, None
        if self.simulator is not None and value is not None:
            simulator = self.simulator.without_oracle(value.shape, n_draws)
            try:
                pickle.dumps(simulator)
            except Exception:  # a target of the user need not be written
                simulator = None
        summary = None if self.numbers is None else self.summary()
        write_folder(
            *(folder, replace(self, simulator=simulator), self.value),
            *(self.guarantee, self.budget, self.plan),
            table=None if summary is None else summary.table(MOST_ROWS_OF_CARD),
            attacker=self.report().lines,
            warning=self.warning,
            can_simulate=simulator is not None and simulator.is_ready,
        )

    def report(self, audit: object = None) -> PrivacyReport:
        """Say what the release promises and what an attacker gains, for those who must approve it.

        Parameters
        ----------
        audit : result of `skdp.audit`, list of these, or None, default=None
            Checks that ran; the report repeats their first line.

        Returns
        -------
        PrivacyReport
            A text, a page and JSON.
        """
        law = None
        if self.simulator is not None:
            mechanism = self.simulator.mechanism
            whole = mechanism.guarantee().epsilon == self.guarantee.epsilon  # and not of a search
            law = mechanism.noise_law if whole else None
        audits = audit if isinstance(audit, list | tuple) else [audit] * (audit is not None)
        checks = tuple(str(each).partition("\n")[0] for each in audits)
        title = self.plan.partition("\n")[0].removeprefix("Plan: ")
        return make_report(title, self.guarantee, law, self.budget, checks)


def load(folder: str | Path) -> Release:
    """Read what :meth:`Release.save` or :meth:`PrivateEstimator.save` wrote.

    Parameters
    ----------
    folder : str or path-like
        Reading it executes what is in it, as with any pickle: load only what you trust.

    Returns
    -------
    Release
        The model is its `value`.

    Raises
    ------
    ValueError
        If the folder holds no release, or its files are not those that were saved.
    """
    loaded = read_folder(Path(folder))
    assert isinstance(loaded, Release)
    return loaded


def _predicted(models: list[Estimator], X: Container) -> Iterator[NDArray]:
    """Predict with each model that can."""
    for model in models:
        with suppress(ValueError):  # a step may refuse the noisy output of the one before it
            yield model.predict(X)


def below_promise(released: Release, diagram: str) -> str:
    """Show a promise, alone and with earlier releases, above something in HTML."""
    said = html.escape(together(released.guarantee, released.budget))
    promise = f"<pre>{html.escape(str(released.guarantee))}</pre><p>{said}</p>"
    return f"<div>{promise}{diagram}</div>"


def describe_conflict(distance: float, name: str, gamma: float) -> str:
    """Describe a conflict with the prior; empty where there is none."""
    if distance <= CONFLICT:
        return ""
    seen = (
        f"{name} is {two_digits(distance)} standard deviations from what public records would "
        "say, the farthest of all numbers. What was not read off the private records is the "
        "oracle's"
    )
    if not gamma:
        return f"The prior is far from the records: {seen}. It does not affect the guarantee."
    return (
        f"What was released contradicts the oracle: {seen}, and the noise may be too small, since "
        "gamma is about records like the oracle's. Check that all columns have the same units, or "
        "use an oracle that is like the private records."
    )
