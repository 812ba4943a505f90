"""The form of a dataset, and records brought into it.

On records of another form a function may behave differently: integers overflow, single precision
loses digits. So one form is settled between the private dataset and a draw of the oracle, and both
pass through :meth:`DatasetForm.convert`.

Containers, names and dtypes are those of the private dataset, with three exceptions. Integers, and
objects, which declare no type, become doubles where the oracle yields floats. A column of
categories has those of the oracle, since a private category may tell of a person. A sparse
container has neither duplicates nor zeros. Under a plain promise private records are not converted,
since an entry that cannot be would have to be refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import shorten
from skdp.core.dataset import (
    NAMES,
    Dataset,
    Elsewhere,
    belongs_to,
    index_dtype,
    summed_rows,
    with_index_dtype,
)
from skdp.core.dtypes import (
    DType,
    MisfitError,
    cast,
    categories_of,
    common,
    made_up_entries,
    name_dtype,
    series_of,
    without_digest,
)
from skdp.core.plain import as_array, plain
from skdp.core.types import Container

# A form in words: the name of the part, the class, the shape of a record, names and dtypes.
FormKey = tuple[str, str, tuple[int, ...], tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Form:
    """The public facts about one container, besides the number of its records."""

    kind: type
    shape: tuple[int, ...]  # of one record
    dtypes: tuple[DType, ...]  # one for each column of a frame, otherwise a single one
    names: tuple[object, ...] = ()  # of the columns of a frame, or of a series
    index_dtype: np.dtype | None = None  # of a sparse container: some solvers take one width only

    @classmethod
    def of(cls, container: Container) -> Form:
        """Read the form of a container."""
        kind = Elsewhere if isinstance(container, Elsewhere) else type(container)
        if belongs_to(container, "pandas", "polars") and len(container.shape) == 1:
            return cls(kind, (), (container.dtype,), (container.name,))
        if isinstance(container, Elsewhere) or belongs_to(container, "pandas", "polars"):
            names = tuple(container.columns)
            return cls(kind, (len(names),), tuple(container.dtypes), names)
        if sparse.issparse(container):
            width = index_dtype(container)
            return cls(kind, container.shape[1:], (container.dtype,), index_dtype=width)
        array = np.asarray(container)  # a matrix or a list is drawn, and becomes an array
        dtype = np.dtype(array.dtype.kind) if array.dtype.kind in "US" else array.dtype
        return cls(np.ndarray, array.shape[1:], (dtype,))

    @property
    def is_frame(self) -> bool:
        """Whether each column has a name and a dtype of its own."""
        return bool(self.names) and self.shape != ()

    @property
    def key(self) -> tuple[str, tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
        """The form in words, equal in every process."""
        kind = f"{self.kind.__module__.partition('.')[0]}.{self.kind.__name__}"
        names = tuple(map(str, self.names)) if self.is_frame else ()
        return kind, self.shape, names, tuple(map(name_dtype, self.dtypes))

    def agree(self, theirs: tuple[DType | str, ...]) -> Form:
        """Return the form in which records of this form and drawn ones can be alike."""
        theirs = theirs * len(self.dtypes) if len(theirs) == 1 else theirs
        if len(theirs) != len(self.dtypes):
            return self  # the conversion will say what is wrong
        if not self.names:  # an array declares no categories
            theirs = tuple(np.dtype(object) if categories_of(each) else each for each in theirs)
        return replace(self, dtypes=tuple(map(common, self.dtypes, theirs)))

    def convert(self, container: Container) -> Container:
        """Return the same records in this form; MisfitError where that is not possible."""
        if isinstance(container, Elsewhere):  # which is in no other form
            return container
        if self.is_frame:
            return self._frame(container)
        if self.names:
            given = belongs_to(container, "pandas", "polars") and len(container.shape) == 1
            values = container if given else self._reshape(as_array(container))
            return series_of(self.kind, self.names[0], values, self.dtypes[0])
        if sparse.issparse(container) and self.kind is not np.ndarray:
            return self._sparse(container)
        array = cast(self._reshape(as_array(container)), self.dtypes[0])
        if self.kind is np.ndarray:
            return np.ascontiguousarray(array)
        return self._sparse(sparse.csr_array(array))

    def made_up(self, n_records: int) -> Container:
        """Make records of this form, which depend on its types only."""
        if not self.is_frame:
            shape = (n_records, *self.shape)
            return self.convert(np.resize(made_up_entries(self.dtypes[0]), shape))
        entries = (np.resize(made_up_entries(dtype), n_records).tolist() for dtype in self.dtypes)
        return self.convert(self.kind(dict(zip(self.names, entries, strict=True))))

    def _reshape(self, array: NDArray) -> NDArray:
        """Read a single column as single values, and the other way round."""
        self._check_shape(array.shape[1:])
        return array.reshape(len(array), *self.shape)

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if shape != self.shape and {shape, self.shape} != {(), (1,)}:
            raise MisfitError(
                f" has {_say_shape(shape)}, and that of the data has {_say_shape(self.shape)}"
            )

    def _sparse(self, container: Container) -> Container:
        self._check_shape(container.shape[1:])
        rows = container.tocsr()
        data = cast(rows.data, self.dtypes[0])
        rows = summed_rows(type(rows)((data, rows.indices, rows.indptr), shape=rows.shape))
        return with_index_dtype(self.kind(rows), self.index_dtype)

    def _frame(self, container: Container) -> Container:
        given = Form.of(container)
        orders = [[*map(categories_of, form.dtypes)] for form in (given, self)]
        if given == self and orders[0] == orders[1]:
            labeled = hasattr(container, "reset_index")
            return container.reset_index(drop=True) if labeled else container
        if len(set(self.names)) < len(self.names):
            raise MisfitError(" has other columns than that of the data, where names repeat")
        columns: Iterable[object]
        if given.is_frame:
            if given.names != self.names:
                raise MisfitError(f" {_compare_names(given.key[2], self.key[2])}")
            columns = (container[name] for name in self.names)
        else:
            columns = self._reshape(as_array(container)).T
        kind = sys.modules[self.kind.__module__.partition(".")[0]].Series
        parts = zip(self.names, columns, self.dtypes, strict=True)
        return self.kind({name: series_of(kind, name, *part) for name, *part in parts})


@dataclass(frozen=True)
class DatasetForm:
    """The forms of the parts of a dataset, each in the place of its part."""

    parts: Dataset
    allow_nan: bool = field(default=False, compare=False)  # of entries of X, by the target

    @classmethod
    def of(cls, dataset: Dataset, allow_nan: bool = False) -> DatasetForm:
        """Read the forms of a dataset."""
        return cls(dataset.map(Form.of), allow_nan)

    @property
    def key(self) -> tuple[FormKey, ...]:
        """The forms in words, equal in every process."""
        return tuple((name, *form.key) for name, form in self.parts.named.items())

    @property
    def of_rows(self) -> DatasetForm:
        """The forms of the records, without that of the numbers of persons."""
        return replace(self, parts=self.parts._replace(groups=None))

    @property
    def of_persons(self) -> DatasetForm:
        """The forms of records, and that of the numbers of the persons whom they belong to."""
        numbers = Form(np.ndarray, (), (np.dtype(np.intp),))
        return replace(self, parts=self.parts._replace(groups=numbers))

    def __str__(self) -> str:
        """Describe the forms in one line."""
        return describe_key(self.key)

    def agree(self, drawn: DatasetForm | tuple[FormKey, ...]) -> DatasetForm:
        """Return the schema in which datasets of this one and drawn ones can be alike."""
        if isinstance(drawn, DatasetForm):
            theirs = drawn.parts.map(lambda form: form.dtypes)
        else:
            theirs = Dataset(**{name: dtypes for name, *_, dtypes in drawn})
        if theirs.named.keys() != self.parts.named.keys():
            return self  # the conversion will say what is wrong
        return replace(self, parts=self.parts.map(Form.agree, theirs))

    def convert(self, dataset: Dataset, owner: str) -> Dataset:
        """Return the same records in these forms, or raise ValueError, which holds no value."""
        given, asked = dataset.named, self.parts.named
        if given.keys() != asked.keys():
            hint = ""
            if owner.startswith("The oracle") and len(asked) > 1 and len(given) == 1:
                hint = " Give it y too, or wrap features: RandomTaskOracle(X, classes=...)."
            if "groups" in asked.keys() - given.keys():
                hint = " Let it draw persons: give it groups, or take PersonsOracle(oracle, sizes)."
            elif "groups" in given.keys() - asked.keys():
                hint = " An oracle of persons is for a sampled release with groups."
            raise ValueError(
                f"{owner} returned {_say_parts(given)}. It must return "
                f"{_say_parts(asked)}, like the private records, or those of 'like'.{hint}"
            )
        flaw, converted = "", {}
        for name, form in asked.items():
            try:
                converted[name] = form.convert(given[name])
            except MisfitError as misfit:
                flaw = f"{name}{misfit}"
                break
        if flaw:
            settled = "the plan" if owner == "The private dataset" else "the data"
            raise ValueError(
                f"{owner} has records of another form than {settled}: its {flaw}. Bring both into "
                "one form."
            )
        return Dataset(**converted)


def declared(dataset: Dataset) -> Dataset:
    """Return private records in plain containers; refuse a list, which declares no type."""
    return dataset.map(plain, NAMES)


def describe_key(key: tuple[FormKey, ...]) -> str:
    """Say a schema in one line, for messages."""
    return ", ".join(
        f"{name} {kind} of {shorten(sorted(set(map(without_digest, dtypes))))}"
        for name, kind, _, _, dtypes in key
    )


def describe_columns(given: tuple[FormKey, ...], asked: tuple[FormKey, ...]) -> str:
    """Say in which columns two schemas differ, by name where they have names."""
    said = []
    theirs = {each[0]: each for each in asked}
    for ours in given:
        part, _, shape, names, dtypes = ours
        _, _, other, others, expected = theirs.get(part, ours)
        if names and others and names != others:
            said.append(f"its {part} {_compare_names(names, others)}")
        elif shape != other:
            said.append(f"its {part} has {_say_shape(shape)}, not {_say_shape(other)}")
        elif names and others:
            said += [
                f"column {name!r} holds {without_digest(one)}, not {without_digest(another)}"
                for name, one, another in zip(names, dtypes, expected, strict=True)
                if one != another
            ][:5]
    return "".join(f" {each[0].upper()}{each[1:]}." for each in said)


def _compare_names(names: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Say which of the other columns are lacking, and which are there besides."""
    lacks = [name for name in others if name not in names]
    added = [name for name in names if name not in others]
    said = [f"lacks the columns {shorten(lacks)}"] * bool(lacks)
    said += [f"has the columns {shorten(added)} besides"] * bool(added)
    return " and ".join(said) or "has the columns in another order"


def _say_shape(shape: tuple[int, ...]) -> str:
    if len(shape) != 1:
        return f"{len(shape) + 1} dimension{'s' if shape else ''}"
    return f"{shape[0]} column{'s' if shape[0] != 1 else ''}"


def _say_parts(parts: Iterable[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
