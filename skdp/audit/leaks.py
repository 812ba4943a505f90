"""Search of an object for what must not leave the house: records, exact numbers, row by row."""

from __future__ import annotations

import gc
import pickle
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from skdp.core.dataset import Dataset, as_dataset, take_records
from skdp.core.types import Container, Estimator
from skdp.estimators.configuration import seeded
from skdp.estimators.delegation import DelegatedMethods
from skdp.estimators.inputs import fit_on

_LEAST_RECORDS = 8  # fewer could be as many as something else by chance
_WHOLE = ("<f8", "<i8")
_DIGITS = re.compile(rb"\d+\.\d+")
_LEAST_DIGITS = 8  # so many in a text single a number out among millions


class Leak(NamedTuple):
    """The way to something private, its kind, and how many numbers or entries were found."""

    where: str
    kind: str
    n_found: int


def find_leaks(
    thing: object,
    X: Container,
    y: Container = None,
    *,
    parameters: object = None,
    public: object = None,
    **fit_params: object,
) -> list[Leak]:
    """Search an object for the records that it was made from.

    The search follows all references of the object, and reads its pickle and its text. To find
    nothing proves nothing: a number that was changed in its last bit is another number.

    An estimator around a private one is also tried: pass it unfitted, with public records. It is
    fitted to them, without noise, and to changed records, where its private members release the
    same. So what differs is what the outer estimator learns by itself, and no noise protects it.

    Parameters
    ----------
    thing : object or pathlib.Path
        A fitted estimator, a plan, a release; or a file or folder, whose bytes are searched.
    X : array-like of shape (n_samples, n_features)
        The records. Numbers with a fractional part are searched for one by one, whole numbers only
        as rows of at least three.
    y : array-like of shape (n_samples,) or None, default=None
        The responses, if they must not be found.
    parameters : object or None, default=None
        An array, or the same estimator fitted without noise, whose numbers with a fractional part
        must not be found.
    public : object or None, default=None
        Public records or fitted objects, whose numbers are no leak.
    **fit_params : dict
        Further parameters of the method `fit` of an estimator around a private one.

    Returns
    -------
    list of named tuples
        Of `where`: the way to it, such as ``"steps[1][1].coef_"``, or "pickle", "repr", "str" or
        the path of a file; `kind`: "records", "parameters", "one per record" (a container of as
        many entries as records) or "learned outside"; and `n_found`, the number of different
        numbers or of entries.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from skdp.audit import find_leaks
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = KMeans(n_clusters=3, random_state=0).fit(X)
    >>> find_leaks(model, X)
    [Leak(where='labels_', kind='one per record', n_found=50)]
    """
    search = _Search(X, y, parameters, public)
    if isinstance(thing, Path):
        files = [thing] if thing.is_file() else sorted(filter(Path.is_file, thing.rglob("*")))
        parts: Iterator[tuple[str, object]] = ((str(path), path.read_bytes()) for path in files)
    else:
        parts = chain(_walk(thing), _show(thing))
    found = (Leak(where, *each) for where, part in parts for each in search(part))
    learned = _learned_outside(thing, as_dataset((X, y)), fit_params)
    return list({each[:2]: each for each in chain(found, learned) if each.n_found}.values())


class _StandIn(DelegatedMethods, BaseEstimator):
    """An estimator in the place of a private one, which releases what `learn` returns."""

    random_state = None

    def __init__(self, estimator: Estimator, learn: Callable[..., Estimator]) -> None:
        self.estimator, self.learn = estimator, learn

    def fit(self, X: Container, y: Container = None, sample_weight: Container = None) -> Self:
        self.estimator_ = self.learn(self.estimator, Dataset(X, y, sample_weight))
        return self


def _learned_outside(thing: Any, dataset: Dataset, fit_params: dict) -> Iterator[Leak]:
    """Fit what is around private estimators to two datasets, and yield in what the fits differ."""
    is_outer = isinstance(thing, BaseEstimator) and not isinstance(thing, DelegatedMethods)
    held = thing.get_params().values() if is_outer else ()
    if not any(isinstance(each, DelegatedMethods) for each in held):
        return
    models: list[Estimator] = []
    n_fits = 0

    def learn(estimator: Any, records: Dataset) -> Estimator:
        nonlocal n_fits
        n_fits += 1
        if n_fits > len(models):  # else a fit to the first dataset is played back
            inner = estimator.estimator if isinstance(estimator, _StandIn) else estimator
            models.append(fit_on(clone(inner), records))
        return models[n_fits - 1]

    stand_ins = {
        name: _StandIn(each.estimator, learn)
        for name, each in clone(thing).get_params().items()
        if isinstance(each, DelegatedMethods) and not hasattr(each, "estimator_")  # nor frozen
    }
    rng, n = np.random.default_rng(0), dataset.n_records
    some = rng.permutation(n)[: max(2, n // 10)]
    rows, labels = np.arange(n), np.arange(n)  # other features, and labels that change places
    rows[some], labels[some] = rng.integers(n, size=len(some)), np.roll(some, 1)
    others = Dataset(*map(take_records, dataset.parts, (rows, labels)))
    trials = []
    for parts in (dataset.parts, others.parts):
        n_fits = 0
        with seeded(0), parallel_config(backend="sequential"):
            fitted = clone(clone(thing).set_params(**stand_ins)).fit(*parts, **fit_params)
        kinds = int | float | str | np.generic | np.ndarray
        trials.append(
            {at: np.asarray(each) for at, each in _walk(fitted) if isinstance(each, kinds)}
        )
    for where in dict.fromkeys(chain(*trials)):
        one, other = (trial.get(where, np.empty(0)) for trial in trials)
        if one.dtype.kind != "O" and one.tobytes() != other.tobytes():
            yield Leak(where, "learned outside", max(one.size, other.size))


class _Search:
    """Numbers to be found, by kind, their first digits, and rows of whole numbers as bytes."""

    @np.errstate(invalid="ignore")  # NaN is cast to a whole number, and equals none
    def __init__(self, X: Container, y: Container, parameters: object, public: object) -> None:
        dataset = as_dataset((X, y), "The dataset")
        self.n_records = dataset.n_records
        options = parameters.get_params() if isinstance(parameters, BaseEstimator) else {}
        known = _telling(public, [each for each in options.values() if type(each) is float])
        records = np.setdiff1d(_telling(dataset.parts), known)
        exact = np.setdiff1d(_telling(parameters), [*known, *records])
        self.numbers = {"records": records, "parameters": exact}
        self.digits = {k: _digits(str(v.tolist()).encode()) for k, v in self.numbers.items()}
        rows = set() if len(records) else _rows(dataset.X)
        shown = b" ".join(each.astype(k).tobytes() for each in _arrays(public) for k in _WHOLE)
        self.rows = {row for row in rows if row not in shown}

    def __call__(self, part: Any) -> Iterator[tuple[str, int]]:
        """Search one array, number, text or bytes, and count the entries of a container."""
        text: bytes | bytearray = b""
        match part:
            case str():
                text = part.encode(errors="replace")
            case bytes() | bytearray():
                text = part
        numbers = _numbers_in(part)
        for kind, private in self.numbers.items():
            n_found = _count(private, numbers) if len(numbers) else 0
            yield kind, n_found or len(_digits(text) & self.digits[kind])
        if self.rows:
            data = text or numbers.tobytes()
            yield "records", sum(row in data for row in self.rows)
        # tuples are of the interpreter, too
        containers = list | dict | set | frozenset | np.ndarray
        if isinstance(part, containers) or sparse.issparse(part):
            length = part.shape[:1] if hasattr(part, "shape") else (len(part),)
            if length == (self.n_records,) and self.n_records >= _LEAST_RECORDS:
                yield "one per record", self.n_records


def _numbers_in(part: object) -> NDArray[np.float64]:
    """Return the numbers of an array, or doubles of either byte order at any place of bytes."""
    match part:
        case bytes() | bytearray():
            ends = (len(part) - (len(part) - i) % 8 for i in range(8))
            words = [np.frombuffer(part[i:end], "<f8") for i, end in enumerate(ends)]
            return np.concatenate([*words, *(each.byteswap() for each in words)])
        case float() | np.ndarray() | np.generic():
            array = np.atleast_1d(part)
            while isinstance(array.base, np.ndarray):  # a view leads to all of an array
                array = array.base
            if array.dtype.kind == "V":
                return _numbers_in(array.tobytes())
            if array.dtype.kind in "fiu":
                return array.astype(np.float64).ravel()
    return np.empty(0)


def _walk(thing: object) -> Iterator[tuple[str, object]]:
    """Yield all that an object refers to, once each, with the way to it."""
    seen: dict[int, object] = {}  # keeps parts alive, or another one might get the same id
    waiting = [("", thing)]
    while waiting:
        where, part = waiting.pop()
        if id(part) in seen or part is None or _is_of_code(part):
            continue
        seen[id(part)] = part
        yield where or type(part).__name__, part
        waiting += [(f"{where}{step}".lstrip("."), each) for step, each in _inside(part)][::-1]


def _is_of_code(part: object) -> bool:
    """Return whether something is of a program: a module, its names, a class, or a stand-in."""
    match part:
        case dict():
            return "__builtins__" in part or "__build_class__" in part
        case type():
            root = part.__module__.partition(".")[0]
            file = getattr(sys.modules.get(root), "__file__", None)
            return root in {"skdp", *sys.stdlib_module_names} or "site-packages" in str(file)
        case types.ModuleType() | types.CodeType() | _StandIn():
            return True
    return False


def _inside(part: Any) -> Iterator[tuple[str, object]]:
    """Yield the references of one object with the step to each, by name where they have one."""
    attributes = getattr(part, "__dict__", {})
    items: Iterable[tuple[object, object]] = ()
    match part:
        case dict():
            items = part.items()
        case list() | tuple():
            items = enumerate(part)
        case np.ndarray() if part.dtype.kind == "O":
            items = enumerate(part.ravel().tolist())
    yield from [(f"[{key!r:.40}]", each) for key, each in items]
    yield from [(f".{name}", each) for name, each in attributes.items()]
    with suppress(Exception):  # what has none of these shows no more
        if type(part).__module__.startswith("sklearn.") and not isinstance(part, BaseEstimator):
            yield ".__reduce__()", part.__reduce__()[1:]  # a compiled class
        if hasattr(type(part), "to_numpy"):
            yield ".to_numpy()", np.asarray(part.to_numpy())
    for each in gc.get_referents(part):
        if each is not attributes:
            yield f".<{type(each).__name__}>", each


def _show(thing: object) -> Iterator[tuple[str, object]]:
    """Yield the texts of an object, and its pickle."""
    shows: list[tuple[str, Callable]] = [("repr", repr), ("str", str), ("pickle", pickle.dumps)]
    for name, show in shows:
        with suppress(Exception), redirect_stdout(StringIO()):  # one that fails leaks nothing
            yield name, show(thing)


def _arrays(thing: object) -> list[NDArray[np.float64]]:
    """Return all numbers that can be reached from an object, as doubles, in arrays."""
    numeric = (
        each for _, each in _walk(thing) if isinstance(each, float | np.ndarray | np.generic)
    )
    arrays = map(np.asarray, numeric)
    return [each.astype(np.float64) for each in arrays if each.dtype.kind in "fiu"]


@np.errstate(invalid="ignore")  # NaN is cast to a whole number, and equals none
def _rows(thing: object) -> set[bytes]:
    """Return the rows of at least three numbers as bytes, of doubles and of integers."""
    tables = (each for each in _arrays(thing) if each.ndim == 2 and each.shape[1] > 2)
    return {row.tobytes() for each in tables for kind in _WHOLE for row in each.astype(kind)}


def _telling(*things: object) -> NDArray[np.float64]:
    """Return the different finite numbers with a fractional part of more than ten bits."""
    numbers = np.concatenate([np.empty(0), *map(np.ravel, _arrays(things))])
    finite = np.unique(numbers[np.isfinite(numbers)])
    short = np.ldexp(finite, 10)
    return finite[(np.abs(finite) < 2.0**53) & (short != np.floor(short))]


def _count(private: NDArray[np.float64], numbers: NDArray[np.float64]) -> int:
    """Count the private numbers among others, or those in single precision if two are adjacent."""
    n_found = int(np.isin(private, numbers).sum())
    among = np.isin(numbers, private.astype(np.float32).astype(np.float64))
    return n_found or (int(among.sum()) if (among[1:] & among[:-1]).any() else 0)


def _digits(text: bytes | bytearray) -> set[bytes]:
    """Return the first digits of all numbers in a text that have so many."""
    digits = (each.replace(b".", b"").lstrip(b"0") for each in _DIGITS.findall(text))
    return {each[:_LEAST_DIGITS] for each in digits if len(each) >= _LEAST_DIGITS}
