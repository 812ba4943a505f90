"""The kinds of what is released: a class and a row of `KINDS` for a value of `release`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from skdp.aggregate.blocks import N_RULES, Rules
from skdp.aggregate.code import axes_of
from skdp.codes.encoder import MOST_COMPONENTS
from skdp.core.checks import shown
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.target import Target, is_auto, replaces
from skdp.core.types import Estimator
from skdp.estimators.configuration import alone, without_side_effects
from skdp.estimators.inputs import uses_response
from skdp.estimators.known_target import KnownTarget, check_known
from skdp.estimators.members import last_step
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.precautions import check_members
from skdp.estimators.predictions import (
    Predictions,
    PredictionTarget,
    anchors_of,
    check_predictions,
    predictions_of,
)
from skdp.estimators.public_fit import Public
from skdp.estimators.scores import RecordScores, kind_of
from skdp.estimators.trees import LeafTarget, is_tree
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.fitted_function import FittedFunctionTarget
from skdp.functions.known_density import KnownDensityTarget, check_known_density
from skdp.mechanisms.base import Mechanism

MOST_ROWS = 4000  # from which a student learns, times the number of classes
MOST_NUMBERS = 2**23  # of the probabilities of random rules


class Kind:
    """Fitted attributes: those of the catalog, or a list of names."""

    configure: Callable[[Estimator], Estimator] = staticmethod(without_side_effects)
    student: Estimator = None
    takes_weights = True  # of the records of persons
    declared: tuple[object, ...] = ()
    """What it holds that must be public."""

    def __init__(self, release: Any):
        self.release = release

    def reads_response(self, estimator: Estimator) -> bool:
        """Return whether y has a use."""
        return uses_response(estimator)

    def check(self, estimator: Estimator) -> None:
        """Refuse, before any fit, a release that the estimator does not have."""
        match self.release:
            case str("auto"):
                try:
                    check_members(estimator)
                except ValueError as error:
                    if kind_of(estimator) is not None:
                        error.add_note("With a SensitivitySampler its predictions are released.")
                    raise
            case str(name):
                raise ValueError(
                    "The 'release' parameter of PrivateEstimator must be 'auto', 'predictions' or "
                    f"a list of names of fitted attributes. Got {shown(name)}. A single name is a "
                    f"list too: [{shown(name)}]."
                )
            case Sequence() as names if not all(isinstance(name, str) for name in names):
                raise TypeError(
                    "The 'release' parameter of PrivateEstimator must list names of fitted "
                    f"attributes. Got {shown(names)}."
                )

    def check_known(self, estimator: Estimator, example: Dataset) -> None:
        """Refuse what has no sensitivity on paper."""
        check_known(estimator, self.release, example)

    def target(self, estimator: Estimator, public: Public) -> Target:
        """Make the target of one estimator."""
        if is_auto(self.release) and is_tree(last_step(estimator)):
            return name_weights(LeafTarget(estimator, public.fit), public)
        return name_weights(ParameterTarget(estimator, self.release, public.fit), public)

    def coded(self, target: Any, public: Public, code: Any) -> Target:
        """Return the target for a code that is learned from pilots, or for what has a size."""
        return target

    def known_target(
        self, estimator: Estimator, public: Public, mechanism: Mechanism | None
    ) -> Any:
        """Make the target whose sensitivity is known on paper, and that suits a mechanism."""
        return KnownTarget(estimator, public.fit, public.n_samples, mechanism)


class Taught(Kind):
    """Predictions at public points, from which a student learns."""

    configure = staticmethod(alone)

    def __init__(self, release: PredictionTarget):
        super().__init__(release)
        self.student, self.declared = release.student, (release.anchors,)

    def check(self, estimator: Estimator) -> None:
        check_predictions(self.release, estimator)

    def target(self, estimator: Estimator, public: Public) -> Target:
        anchors = anchors_of(self.release, estimator, public.source, public.schema)
        given = public.fit, public.dataset, anchors, public.n_samples
        return name_weights(predictions_of(self.release, estimator, *given), public)

    def coded(self, target: Predictions, public: Public, code: Any) -> Target:
        """Add the axes of random rules, where the oracle has such and they suit the records."""
        reader, n, width = target.reader, n_records(target.anchors), target.reader.n_columns
        has_rules = bool(getattr(public.source.draws_from, "responses", ""))
        is_plain = not has_rules or getattr(code, "size", None) == target.size
        if is_plain or isinstance(reader, RecordScores):
            return target
        k, given = max(2, width), (target.estimator, public.source, public.schema)
        rows = anchors_of(self.release, *given, least=min(10 * n, MOST_ROWS) // k)
        n_rules = min(max(200, N_RULES // k), MOST_NUMBERS // (n_records(rows) * k))
        if n_rules < 2 * MOST_COMPONENTS:
            return target
        with suppress(ValueError, TypeError):  # records that no rule can tell apart
            rules, rng = Rules.of(reader, rows, public), np.random.default_rng(0)
            axes = axes_of(rules.truths(n_rules, rng), width)[0][width:]
            axes = axes[: n * width // 3] * math.sqrt(axes.shape[1])
            parts = target.estimator, self.release.student, reader
            anchors = take_records(rows, np.arange(n))
            target = Predictions(*parts, anchors, target.n_samples, rows, axes)
            return name_weights(target, public)
        return target


class OnLattice(Kind):
    """The function that an estimator learns, on a lattice."""

    def __init__(self, release: BernsteinTransformer):
        super().__init__(release)
        self.declared = (release.feature_range,)

    def check(self, estimator: Estimator) -> None:
        """Refuse nothing: the target checks the lattice."""

    def check_known(self, estimator: Estimator, example: Dataset) -> None:
        check_known_density(estimator, example)

    def target(self, estimator: Estimator, public: Public) -> Target:
        return name_weights(FittedFunctionTarget(estimator, self.release, public.fit), public)

    def known_target(
        self, estimator: Estimator, public: Public, mechanism: Mechanism | None
    ) -> Any:
        n_samples, X = public.n_samples, public.dataset.X
        return KnownDensityTarget(estimator, self.release, public.fit, n_samples, X)


class Own(Kind):
    """What a target of the user makes of the records."""

    takes_weights = False

    def reads_response(self, estimator: Estimator) -> bool:
        return True

    def check(self, estimator: Estimator) -> None:
        if not replaces(self.release, "restore"):
            raise TypeError(
                "The 'release' parameter of PrivateEstimator takes a target that has a method "
                "restore(value) of its own, which makes the released estimator. "
                f"Got {type(self.release).__name__}."
            )

    def target(self, estimator: Estimator, public: Public) -> Target:
        return self.release


class Declared(Kind):
    """An estimator that learns from a released law."""

    def reads_response(self, estimator: Estimator) -> bool:
        return True

    def check(self, estimator: Estimator) -> None:
        """Refuse nothing: any estimator learns from draws."""


KINDS = {PredictionTarget: Taught, BernsteinTransformer: OnLattice, Target: Own, Iterable: Kind}


def kind_of_release(release: object) -> Kind:
    """Return the kind of a value of the parameter `release`."""
    for each, kind in KINDS.items():
        if isinstance(release, each):
            return kind(release)
    raise TypeError(
        "The 'release' parameter of PrivateEstimator must be 'auto', 'predictions', a list of "
        "names of fitted attributes, a PredictionTarget, a BernsteinTransformer "
        "or a target, which inherits from skdp.Target and has a method 'restore'. Got "
        f"{type(release).__name__}. To release the value of a function, use skdp.release."
    )


def name_weights(target: Target, public: Public) -> Target:
    """Add to the description and the key of a target that its records have weights."""
    for quality in public.dataset.qualities:
        target.description += f", {quality}"
        target.key_parts += (quality,)
    return target
