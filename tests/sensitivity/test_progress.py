"""What a run shows."""

import io
import multiprocessing
import re
import sys
import types

import numpy as np
import pytest

from skdp import SensitivitySampler
from skdp.sensitivity import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 1))


def run(n_pairs=49, **options):
    return SensitivitySampler(normal, gamma=None, n_pairs=n_pairs, **options).sample(
        np.mean, 4, "l1"
    )


def test_lines_of_a_run_that_was_asked_to_tell(capsys):
    run(199, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 10
    for line in lines:
        assert re.match(r"skdp: \d+ of 199 pairs, about \d+ \w+ left", line)
    assert lines[-1].startswith("skdp: 199 of 199")


@pytest.mark.parametrize(
    ("seconds", "n_workers", "later", "line"),
    [
        ([0.04, 0.04], 1, 0, None),
        ([0.9, 0.04], 1, 0, None),  # the first pair has loaded modules
        ([0.2, 0.2], 1, 0, "skdp: about 20 s for 100 pairs; n_jobs uses more cores"),
        ([2.0, 2.0], 1, 0, "skdp: about 4 min for 100 pairs; n_jobs uses more cores"),
        ([2.0, 2.0], 4, 100, "skdp: about 100 s for 200 pairs"),
    ],
)
def test_duration_of_a_long_run_is_said_once(monkeypatch, seconds, n_workers, later, line):
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    followed = progress.Progress(100, None, n_workers, later)
    for each in seconds:
        followed.add(1, each)
    assert stream.getvalue().splitlines() == ([] if line is None else [line])
    followed.add(98)
    assert ("100 of 100 pairs" in stream.getvalue()) is (line is not None)


@pytest.mark.parametrize("where", ["nobody looks", "short run", "asked for", "worker"])
def test_silence(monkeypatch, where):
    shown = io.StringIO() if where == "nobody looks" else Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "LONG", 1e9 if where == "short run" else -1.0)
    if where == "worker":
        worker = types.SimpleNamespace(name="LokyProcess-1")
        monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    run(verbose=0 if where == "asked for" else None)
    assert shown.getvalue() == ""
