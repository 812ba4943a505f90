"""What is released of an estimator: one kind for each value of the parameter `release`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from skdp.core.checks import shown
from skdp.core.dataset import Dataset
from skdp.core.schema import Schema
from skdp.core.target import Target, is_auto, replaces
from skdp.core.types import Estimator
from skdp.estimators.configuration import alone, without_side_effects
from skdp.estimators.inputs import uses_response
from skdp.estimators.known import KnownTarget, check_known
from skdp.estimators.members import last_step
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.precautions import check_members
from skdp.estimators.predictions import (
    PredictionTarget,
    anchors_of,
    check_predictions,
    predictions_of,
)
from skdp.estimators.scores import kind_of
from skdp.estimators.trees import LeafTarget, is_tree
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.fitted_function import FittedFunctionTarget
from skdp.functions.known_density import KnownDensityTarget, check_known_density
from skdp.sensitivity.base import Sensitivity


class Public(NamedTuple):
    """The public fit, what it was fitted to, and the source of further public records."""

    fit: Estimator
    dataset: Dataset
    classes: list[NDArray] | None
    source: Sensitivity
    schema: Schema
    n_samples: int


@dataclass(frozen=True)
class Attributes:
    """Fitted attributes: those of the catalog, or a list of names."""

    release: Any
    configure: Callable[[Estimator], Estimator] = without_side_effects

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
            return _named(LeafTarget(estimator, public.fit), public)
        return _named(ParameterTarget(estimator, self.release, public.fit), public)

    def known_target(self, estimator: Estimator, public: Public) -> Any:
        """Make the target whose sensitivity is known on paper."""
        return KnownTarget(estimator, public.fit, public.n_samples)


class Predictions(Attributes):
    """Predictions at public points, from which a student learns."""

    def check(self, estimator: Estimator) -> None:
        check_predictions(self.release, estimator)

    def target(self, estimator: Estimator, public: Public) -> Target:
        anchors = anchors_of(self.release, estimator, public.source, public.schema)
        given = public.fit, public.dataset, anchors, public.n_samples
        return _named(predictions_of(self.release, estimator, *given), public)


class Function(Attributes):
    """The function that an estimator learns, on a lattice."""

    def check(self, estimator: Estimator) -> None:
        """Refuse nothing: the target checks the lattice."""

    def check_known(self, estimator: Estimator, example: Dataset) -> None:
        check_known_density(estimator, example)

    def target(self, estimator: Estimator, public: Public) -> Target:
        return _named(FittedFunctionTarget(estimator, self.release, public.fit), public)

    def known_target(self, estimator: Estimator, public: Public) -> Any:
        n_samples, X = public.n_samples, public.dataset.X
        return KnownDensityTarget(estimator, self.release, public.fit, n_samples, X)


class Own(Attributes):
    """What a target of the user makes of the records."""

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


def kind_of_release(release: object) -> Attributes:
    """Return the kind of a value of the parameter `release`."""
    match release:
        case PredictionTarget():
            return Predictions(release, configure=alone)
        case BernsteinTransformer():
            return Function(release)
        case Target():
            return Own(release)
        case Iterable():
            return Attributes(release)
    raise TypeError(
        "The 'release' parameter of PrivateEstimator must be 'auto', 'predictions', a list of "
        "names of fitted attributes, a PredictionTarget, a BernsteinTransformer "
        "or a target, which inherits from skdp.Target and has a method 'restore'. Got "
        f"{type(release).__name__}. To release the value of a function, use skdp.release."
    )


def _named(target: Target, public: Public) -> Target:
    """Say of a target that its records have weights."""
    if public.dataset.sample_weight is not None:
        target.description += ", weighted"
        target.key_parts += ("weighted",)
    return target
