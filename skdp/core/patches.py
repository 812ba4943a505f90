"""What other packages put around estimators: a known autologger is switched off, others refused."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any

from sklearn.base import BaseEstimator

from skdp.core.identity import origin_of

# what mlflow does around a method is switched off, and the others only compute
TRUSTED = {"sklearn", "numpy", "scipy", "joblib", "threadpoolctl", "torch", "mlflow"}
TRUSTED |= sys.stdlib_module_names

_lock, _switched_off = threading.Lock(), ExitStack()
_n_inside = 0  # in all threads, since the switch of mlflow belongs to the process


@contextmanager
def without_autologging() -> Iterator[None]:
    """Switch off the autologgers of mlflow, which store each fit, until the last thread is out."""
    global _n_inside
    with _lock:
        _n_inside += 1
        if mlflow := sys.modules.get("mlflow.utils.autologging_utils"):
            _switched_off.enter_context(mlflow.disable_autologging())
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if not _n_inside:
                _switched_off.close()


def check_unpatched() -> None:
    """Refuse a method of an installed estimator that was replaced by code of another package."""
    for owner in {base for kind in _subclasses(BaseEstimator) for base in kind.__mro__}:
        home = owner.__module__.partition(".")[0]
        for name, method in vars(owner).items():
            for package in {*_packages_of(method)} - TRUSTED - {home}:
                if origin_of(home) in (None, origin_of(package)):
                    continue  # the user's own class, or two packages of one distribution
                path = f"{owner.__module__}.{owner.__qualname__}.{name}"
                undo = f", or write {path} = {path}.__wrapped__" * hasattr(method, "__wrapped__")
                raise RuntimeError(
                    f"{path} was replaced by code of {package}, which may keep private records "
                    f"and exact models. Start Python without that code{undo}."
                )


def _subclasses(kind: Any) -> Iterator[type]:
    for inheriting in kind.__subclasses__():
        yield inheriting
        yield from _subclasses(inheriting)


def _packages_of(method: object) -> Iterator[str]:
    """Yield the packages of a function and of those that it wraps; of a proxy that of its class."""
    while isinstance(method, FunctionType):
        is_proxy = type(method) is not FunctionType
        module = None if is_proxy else method.__globals__.get("__name__")
        yield str(module or type(method).__module__).partition(".")[0]
        method = getattr(method, "__wrapped__", None)
