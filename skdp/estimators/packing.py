"""Values of fitted attributes as flat arrays: an array, or a list of arrays, of floats."""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Container, Matrix, Values


def is_float(value: object) -> bool:
    """Return whether a value is a float, an array of floats, or a list of such arrays."""
    try:
        parts = _parts(value)
    except ValueError:  # rows of different lengths
        return False
    return len(parts) > 0 and all(part.dtype.kind == "f" for part in parts)


def shapes_of(values: Values) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the shapes of the arrays that each value consists of."""
    return {name: tuple(part.shape for part in _parts(value)) for name, value in values.items()}


def flat(*values: object) -> Matrix:
    """Join all numbers of the values."""
    parts = chain.from_iterable(map(_parts, values))
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def split(vector: Matrix, likes: Values) -> Values:
    """Split a vector into values in the forms of others, by their names."""
    numbers, values = iter(np.asarray(vector, dtype=np.float64)), {}
    for name, like in likes.items():
        parts = [
            np.fromiter(numbers, dtype=np.float64, count=part.size).reshape(part.shape)[()]
            for part in _parts(like)
        ]
        values[name] = parts if _is_list(like) else parts[0]
    return values


def same(value: Container, other: Container) -> bool:
    """Return whether two values, of any type, are equal throughout."""
    if _is_list(value) or _is_list(other):
        pairs = zip(value, other, strict=False)
        return len(value) == len(other) and all(same(*pair) for pair in pairs)
    if hasattr(value, "toarray"):
        value, other = value.toarray(), other.toarray()
    value, other = np.asarray(value), np.asarray(other)
    both_missing = (value != value) & (other != other) if value.shape == other.shape else False
    return value.shape == other.shape and bool(np.all((value == other) | both_missing))


def _is_list(value: object) -> bool:
    return (
        isinstance(value, list | tuple) or getattr(getattr(value, "dtype", None), "kind", "") == "O"
    )


def _parts(value: Container) -> list[NDArray]:
    return [np.asarray(part) for part in value] if _is_list(value) else [np.asarray(value)]
