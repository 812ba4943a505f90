"""Keys made of content: equal in every process, and different where it matters.

A cache must not take the pairs of one oracle for those of another, nor a release the sensitivity of
one function for that of another. Names do not tell: all lambdas are called alike, a cell of a
notebook may give an old name to a new class, and the file of a module is edited. So the user's own
code counts by its text, with all that it reads: defaults, enclosed and global variables, functions,
classes with their bases, modules. What is installed counts by name and version.

Nothing is guessed where this content cannot be read. A function without a text equals itself in
this process only, and what cannot be read at all equals nothing, not even itself.
"""

from __future__ import annotations

import secrets

from skdp.core.reader import Reader

PROCESS = secrets.token_hex(8)
"""Part of every key that is good in this process only."""

REMEDY = (
    "Define functions and classes in a file or a cell of a notebook, keep open files, connections "
    "and the like out of them, or name a function by a key of your own: "
    "FunctionTarget(function, key='my-function-v1')."
)


def fingerprint(*parts: object) -> str:
    """Name what results depend on: equal in every process for equal parts.

    Functions and classes of the user's own count by their text and by all that they read, what is
    installed by name and version, other objects by their attributes or what pickling would store.
    TypeError if a part cannot be told from others in another process.
    """
    reader = Reader.of(parts)
    obstacle = reader.unknown or reader.local
    if obstacle:
        raise TypeError(
            "With the 'memory' parameter of SensitivitySampler, oracle and target must be known by "
            f"their content in every process, and {obstacle}. {REMEDY}"
        )
    return reader.digest


def key_of(*parts: object) -> str:
    """Return the fingerprint of the parts, where there is one.

    Else return a key that is equal for equal parts in this process, or one that equals no other;
    :func:`obstacle_of` says which.
    """
    reader = Reader.of(parts)
    if reader.unknown:
        return f"unknown {secrets.token_hex(16)}: {reader.unknown}"
    if reader.local:
        return f"process {PROCESS} {reader.digest}: {reader.local}"
    return reader.digest


def obstacle_of(key: str) -> str:
    """Say why a key of `key_of` is good in one process only, or never; empty if it is not so."""
    kind, _, rest = key.partition(" ")
    return rest.partition(": ")[2] if kind in {"unknown", "process"} else ""
