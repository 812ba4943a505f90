"""Scores of finitely many responses; one of them is released."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from skdp.core.target import Target, ValueFormError, as_target
from skdp.core.types import Container


class ChoiceTarget(Target):
    """The scores of a list of public responses, one of which is released."""

    chooses = True

    def __init__(self, function: Target | Callable, responses: Iterable[object]):
        self._scores = as_target(function)
        self.allow_nan = self._scores.allow_nan
        self.responses = list(responses)
        if not self.responses:
            raise ValueError("The 'responses' must hold at least one response. Got none.")
        self.key_parts = self._scores, len(self.responses)
        self.description = f"{self._scores.description} over {len(self.responses)} responses"

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Score the responses."""
        scores = np.asarray(self._scores(*dataset, seed=seed), dtype=np.float64)
        if scores.shape != (len(self.responses),):
            raise ValueFormError(
                f"the target must return a vector of {len(self.responses)} scores, one for each "
                f"response, and returned shape {scores.shape}"
            )
        return scores

    def restore(self, chosen: int) -> object:
        """Return the response that was chosen."""
        return self.responses[chosen]
