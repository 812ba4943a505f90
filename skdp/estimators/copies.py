"""Copies of public estimators that hold nothing of the memory in which they were made."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import numpy as np

from skdp.core.types import Estimator


def clean_copy(estimator: Estimator) -> Estimator:
    """Copy an estimator, and clear padding bytes of trees, where old memory would stay."""
    copied = copy.deepcopy(estimator)
    for tree in _trees(copied):
        state = tree.__getstate__()
        nodes = np.zeros(len(state["nodes"]), state["nodes"].dtype)  # not like: that fills fields
        for name in nodes.dtype.names:
            nodes[name] = state["nodes"][name]
        tree.__setstate__(state | {"nodes": nodes, "values": state["values"].copy()})
    return copied


def _trees(thing: Estimator) -> Iterator[Estimator]:
    """Walk the trees that an estimator holds, in whatever depth."""
    todo, seen = [thing], {id(thing)}
    while todo:
        each = todo.pop()
        held: Iterable = ()
        if hasattr(getattr(each, "tree_", None), "children_left"):
            yield each.tree_
        if isinstance(each, list | tuple):
            held = each
        elif isinstance(each, dict):
            held = each.values()
        elif isinstance(each, np.ndarray):
            held = each.flat if each.dtype == object else ()
        elif not isinstance(each, type):
            held = getattr(each, "__dict__", {}).values()
        new = [part for part in held if id(part) not in seen]
        seen.update(map(id, new))
        todo.extend(new)
