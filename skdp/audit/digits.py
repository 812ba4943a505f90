"""Codes of how numbers are written in binary: what arithmetic gives away about its operands.

The sum of a value and of noise is rounded at the size of the larger of the two, so its last bits
tell them apart (Mironov, "On significance of the least significant bits for differential privacy",
CCS 2012). Numbers on a lattice tell by where the lattice lies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skdp.audit.outputs import Outputs

Code = Callable[[NDArray[np.float64]], NDArray[np.int64]]  # an integer for each number
N_RESIDUES = 16


def codes_for(x: Outputs, y: Outputs) -> dict[str, Code]:
    """Return the codes that suit two samples, by the name of what they tell."""
    pooled = np.concatenate([x.written, y.written]).ravel()
    pooled = pooled[np.isfinite(pooled) & (pooled != 0)]
    if not len(pooled):
        return {}
    exponent, _, zeros = _parts(pooled)
    # Numbers of half of the sample are multiples of this power of two.
    unit = 2.0 ** max(float(np.median(exponent + zeros)) - 53, -1000)
    steps = [N_RESIDUES / 2 * unit, max(_step(x.written), _step(y.written))]
    codes: dict[str, Code] = {"exponents and trailing zeros": _sizes}
    codes["last bits"] = partial(_last_bits, shift=int(zeros.min()))
    for step in filter(None, steps):
        codes[f"residues modulo {step:.3g}"] = partial(_residues, step=step)
    return codes


def _parts(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], ...]:
    """Split numbers into exponents, significands of 53 bits and counts of their trailing zeros."""
    significand, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.ldexp(np.abs(significand), 53).astype(np.int64)
    zeros = np.frexp(np.maximum(whole & -whole, 1).astype(np.float64))[1] - 1
    return exponent.astype(np.int64), whole, zeros.astype(np.int64)


def _sizes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the exponent and the number of trailing zeros of the significand in one number."""
    exponent, _, zeros = _parts(values)
    return 64 * exponent + zeros


def _last_bits(values: NDArray[np.float64], shift: int) -> NDArray[np.int64]:
    """Return the last four bits of the significand that some number of the sample uses."""
    return (_parts(values)[1] >> shift) % 16


def _residues(values: NDArray[np.float64], step: float) -> NDArray[np.int64]:
    """Return the place of each number between two multiples of a step."""
    part = np.fmod(np.where(np.isfinite(values), values, 0.0), step) / step
    return np.rint(N_RESIDUES * part).astype(np.int64) % N_RESIDUES


def _step(values: NDArray[np.float64]) -> float:
    """Return the step of the lattice that a sample may lie on: nearly its smallest gap."""
    unique = np.unique(values[np.isfinite(values)])
    gaps = np.diff(unique)
    gaps = gaps[gaps > 1e-9 * np.median(np.abs(unique))] if len(gaps) else gaps
    return float(np.quantile(gaps, 0.01, method="lower")) if len(gaps) else 0.0
