"""Release: a released value with its promise, its summary and its intervals."""

from __future__ import annotations

import html
import pickle
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import check_count
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.types import AxisLabels, Values
from skdp.functions.released_density import ReleasedDensity, remark_on_density
from skdp.results.expected import ScoreAt
from skdp.results.folder import check_free, read_folder, write_folder
from skdp.results.intervals import HasIntervals, Simulator
from skdp.results.names import flat_names, flat_numbers, on_one_line, positive_class
from skdp.results.report import PrivacyReport, make_report, together
from skdp.results.summary import MOST_ROWS_OF_CARD, ReleaseSummary
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.tables.release import ReleasedOracle

OF_NOISE = "Standard errors measure the noise alone, not the sampling of the records."
OF_TABLES = "Those of the information, which a column by itself has about y, measure both."
OF_CODE = (
    "Standard errors suppose records like the public ones, but for the share `shift`. "
    "What is not from your data is from public fits."
)


@dataclass(frozen=True, repr=False)
class Release(HasIntervals):
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
        Standard deviations of the numbers under the prior of a public code, wider where the release
        contradicts it. None without a code.
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
    oracle : ReleasedOracle or None, default=None
        The class tables that were released, where the sensitivity is that of ClassTables.
    private_score : ScoreAt or None, default=None
        The accuracy on the private records, if a share of epsilon paid for it.

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
      A person with several records is not covered.
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
    oracle: ReleasedOracle | None = None
    private_score: ScoreAt | None = None

    @property
    def _is_model(self) -> bool:
        return isinstance(self.value, BaseEstimator)

    def __repr__(self) -> str:
        value = type(self.value).__name__ if self._is_model else repr(self.value)
        return f"Release of {value}: {self.guarantee.short}"

    def _repr_html_(self) -> str:
        value = f"<pre>{html.escape(repr(self.value))}</pre>"
        return below_promise(self, estimator_html_repr(self.value) if self._is_model else value)

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
        values, names = flat_numbers(self.numbers), flat_names(self.numbers, self.labels)
        errors, learned = np.full(len(values), np.nan), np.ones(len(values))
        if self.standard_errors is not None:
            errors = flat_numbers(self.standard_errors)
        if self.standard_errors is not None and self.prior_errors is not None:
            prior = flat_numbers(self.prior_errors)
            left = np.divide(errors, prior, out=np.ones_like(errors), where=prior > 0)
            learned = np.clip(1 - left**2, 0, 1)
            errors = np.where(self._are_fixed, np.nan, errors)
        remarks = [OF_NOISE if self.prior_errors is None else OF_CODE]
        if self.oracle is not None:
            found = self.oracle.information_
            names += [f"information in bits[{on_one_line(name)}]" for name in found]
            more = *np.array([*found.values()]).T, np.ones(len(found))
            values, errors, learned = np.hstack([(values, errors, learned), more])
            remarks.append(OF_TABLES)
        if isinstance(self.value, ReleasedDensity):
            remarks.append(remark_on_density(self.value))
        return ReleaseSummary(
            "\n".join(filter(None, (str(self.guarantee), self.warning))),
            *(names, values, errors, learned, self.repaired),
            " ".join(filter(None, remarks)),
            self._title(),
        )

    def _title(self) -> str:
        """Name the model, and the class that a positive coefficient speaks for."""
        if not self._is_model or self.numbers is None:
            return ""
        last = self.value.steps[-1][1] if hasattr(self.value, "steps") else self.value
        return f"{type(last).__name__}{positive_class(self.numbers, self.labels)}"

    def save(self, folder: str | Path, *, n_draws: int = 0) -> None:
        """Write the release to a folder that may be handed on, with a card for its readers.

        The folder holds nothing private, and of the oracle's records only the ranges of columns and
        single numbers that a public fit shows. `release.joblib` is a pickle of this
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
        """
        check_count("n_draws", n_draws, "Release.save", at_least=0)
        folder = Path(folder)
        check_free(folder)
        if n_draws and self.oracle is not None:
            self._plausible_values(n_draws, 0)  # refuses
        value, simulator = self._as_released, None
        if self.simulator is not None and value is not None:
            simulator = self.simulator.without_oracle(value.shape, n_draws)
            try:
                pickle.dumps(simulator)
            except Exception:  # a target of the user need not be written
                simulator = None
        table = None if self.numbers is None else self.summary().table(MOST_ROWS_OF_CARD)
        write_folder(
            *(folder, replace(self, simulator=simulator), self.value, self.report(), self.plan),
            table=table,
            warning=self.warning,
            can_simulate=None if self.oracle else simulator is not None and simulator.is_ready,
        )

    def report(
        self,
        audit: object = None,
        *,
        title: str = "",
        record: str = "",
        purpose: str = "",
        public_records: str = "",
        contact: str = "",
    ) -> PrivacyReport:
        """Say in plain words what is promised and what is not, for those who must approve it.

        Parameters
        ----------
        audit : result of `skdp.audit`, list of these, or None, default=None
            Checks that ran; the report repeats their first line.
        title : str, default=""
            What was released. By default the name of the model or function, and the number of
            records.
        record : str, default=""
            What one record is, such as "a visit of a patient". The report asks for it where it is
            empty, and for each of the following.
        purpose : str, default=""
            What the release is for.
        public_records : str, default=""
            Where the public records come from, or who declared the ranges and by what.
        contact : str, default=""
            Who answers questions.

        Returns
        -------
        PrivacyReport
            A text; `to_html` writes a page, and `to_dict` is for programs.

        Raises
        ------
        TypeError
            If one of the texts is no string.
        """
        law = None
        if self.simulator is not None:
            mechanism = self.simulator.mechanism
            whole = mechanism.guarantee().epsilon == self.guarantee.epsilon  # and not of a search
            law = mechanism.noise_law if whole else None
        audits = audit if isinstance(audit, list | tuple) else [audit] * (audit is not None)
        checks = tuple(str(each).partition("\n")[0] for each in audits)
        named = self.plan.partition("\n")[0].removeprefix("Plan: ")
        return make_report(
            title or re.sub(r"[\w.]*<lambda>", "a function", named),
            *(self.guarantee, law, self.budget, checks, self.private_score),
            record=record,
            purpose=purpose,
            public_records=public_records,
            contact=contact,
        )


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


def below_promise(released: Release, diagram: str) -> str:
    """Show a promise, alone and with earlier releases, above something in HTML."""
    said = html.escape(together(released.guarantee, released.budget))
    promise = f"<pre>{html.escape(str(released.guarantee))}</pre><p>{said}</p>"
    return f"<div>{promise}{diagram}</div>"
