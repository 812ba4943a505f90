"""Learn a public code from pilot pairs, for a sampled sensitivity or for a bound."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from skdp.codes.bounded import with_bounded_code
from skdp.codes.encoder import with_learned_code
from skdp.codes.learning import without_rounding
from skdp.core.geometry import Geometry
from skdp.core.metric import OutputMetric
from skdp.core.schema import Schema
from skdp.core.streams import OUTPUT_DATASET
from skdp.core.target import Target, replaces
from skdp.mechanisms.base import Mechanism
from skdp.sensitivity.base import refuse_zero
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.encoded import check_pilots_within, encoded
from skdp.sensitivity.sampler import SensitivitySampler

N_METRIC_RECORDS = 500
"""Number of the oracle's records from which the metric of the output is learned."""


def learn_code(
    mechanism: Mechanism,
    sampler: SensitivitySampler,
    target: Target,
    n_samples: int,
    schema: Schema,
) -> Mechanism:
    """Learn the code from pilot pairs, before a pair is measured."""
    values, differences = sampler.pilots(target, n_samples, schema)
    metric = _output_metric(target, sampler, schema)
    shaken = partial(sampler.shaken_pilots, target, n_samples, schema, values.shape[1])
    values, differences = without_rounding(values, differences, metric, shaken)
    statistic = sampler.plan(n_samples, mechanism).order_statistic
    level = statistic.k / (statistic.n_pairs + 1)
    return with_learned_code(
        mechanism, values, differences, metric, n_samples=n_samples, level=level
    )


def learn_within(
    options: list[tuple[KnownSensitivity, Mechanism]],
    target: Target,
    n_samples: int,
    schema: Schema,
) -> list[tuple[KnownSensitivity, Mechanism]]:
    """Learn a code from the prior of a bound, and bound the change of the encoded numbers."""
    known, _ = options[0]
    if known.geometry.code is not None:  # learned for an earlier release
        return options
    for each, noise in options:
        refuse_zero(each.for_geometry(Geometry(noise.order), n_samples))
    values, differences = known.prior.pilots(known.bounded(target), n_samples, schema)
    metric = _output_metric(target, known, schema)
    learned = []
    for each, noise in options:
        check_pilots_within(each, values, differences)
        code = with_bounded_code(
            noise, each.value, values, differences, metric, n_samples=n_samples
        )
        learned.append((each, code))
    shape: Any = known.shape
    coded = any(each.geometry.code for _, each in learned)
    if shape is None and coded:
        public = known.public_dataset(n_samples, schema, attempt=OUTPUT_DATASET)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # only the shape of the value is used
            shape = np.shape(known.bounded(target)(*public.parts, seed=0))
    return [
        (encoded(known, each.geometry, shape) if each.geometry.code else known, each)
        for known, each in learned
    ]


def _output_metric(
    target: Target, source: SensitivitySampler | KnownSensitivity, schema: Schema
) -> OutputMetric | None:
    """Return how the output depends on the value, learned from records of the oracle."""
    if not replaces(target, "output_metric"):
        return None
    public = source.public_dataset(N_METRIC_RECORDS, schema, attempt=OUTPUT_DATASET)
    return target.output_metric(*public.parts)
