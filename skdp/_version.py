"""The version of the package, where every module may read it."""

__version__ = "0.1.0"

REVISION = 2
"""Counted up where a target of this version returns other values than before.

What was sampled of the former ones is kept by keys that name it, and serves no more.
"""
