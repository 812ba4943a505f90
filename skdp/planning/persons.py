"""Whether a release is about records or about persons, and which ways serve persons."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from skdp.core.checks import check_real, check_rules
from skdp.core.dataset import Dataset, as_dataset
from skdp.core.persons import first_of_each, with_persons
from skdp.core.target import Target
from skdp.core.types import Container


def unit_of(groups: Container) -> str:
    """Return the unit of a promise, given ids of persons, a plan for persons, or none."""
    return "record" if groups is None or groups is False else "person"


def check_unit(model: Any, groups: Container, owner: str) -> str:
    """Check what a PrivateEstimator says of persons, and return the unit of its promise."""
    rule = "be 'person', or None for persons where groups are given"
    is_unit = model.unit is None or (isinstance(model.unit, str) and model.unit == "person")
    check_rules("PrivateEstimator", unit=(model.unit, is_unit, rule))
    name = "records_per_person"
    most = check_real(name, model.records_per_person, "PrivateEstimator", 1.0, closed="l")
    unit = unit_of(groups)
    if unit == "record" and model.unit is not None:
        raise ValueError(
            f"The 'groups' parameter of {owner} must be given with unit='person'. Got None. Pass "
            "the ids of the persons. A search of scikit-learn hands them on after "
            "set_config(enable_metadata_routing=True) and set_fit_request(groups=True)."
        )
    if most != 1 and (unit == "record" or model.sensitivity != "known"):
        raise ValueError(
            "The 'records_per_person' parameter of PrivateEstimator must be 1 without groups, and "
            f"with any sensitivity but 'known'. Got {most:g}. Leave it out."
        )
    return unit


def of_persons(target: Target, weighs: bool = False) -> Target:
    """Return a target that is evaluated on all records of persons."""
    made = copy.copy(target)
    made.sums_persons, made.weighs_persons = True, weighs
    if made.key_parts is not None:
        made.key_parts = (*made.key_parts, "persons", weighs)
    return made


def as_target_sees(drawn: Dataset, has_weights: bool) -> Dataset:
    """Return public records of persons, with the weights that such records have in a target."""
    codes = np.arange(drawn.n_records) if drawn.groups is None else drawn.groups
    counts = np.bincount(codes)[codes]
    return drawn._replace(sample_weight=1 / counts if has_weights else None, groups=None)


def without_ids(like: Container, groups: Container, owner: str) -> Container:
    """Take the column of ids out of the records that show the form of a plan."""
    if isinstance(groups, bool | None):
        return like
    if not isinstance(groups, str):
        raise TypeError(
            f"The 'groups' parameter of {owner} must be True for a plan of persons, or the name of "
            f"the column of ids in 'like'. Got {type(groups).__name__}. Pass the ids to execute."
        )
    if like is None:
        return like
    dataset = as_dataset(like, f"The 'like' parameter of {owner}")
    return first_of_each(with_persons(dataset._replace(groups=groups))).parts
