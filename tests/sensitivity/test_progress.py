"""What a run shows."""

import io
import multiprocessing
import os
import re
import select
import sys
import types

import numpy as np
import pytest

from skdp import SensitivitySampler
from skdp.sensitivity import progress

BAR = r"49/49 \[[\d:]+<[\d:]+, .*pair/s\]"  # time, time left, rate


class Terminal(io.StringIO):
    def isatty(self):
        return True


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 1))


def run(n_pairs=49, **options):
    return SensitivitySampler(normal, gamma=None, n_pairs=n_pairs, **options).sample(
        np.mean, 4, "l1"
    )


def terminal(monkeypatch):
    """Make standard error look like a terminal; a fixture would do so before pytest takes it."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)


def test_bar_in_a_pseudo_terminal(monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    termios = pytest.importorskip("termios", reason="pseudo-terminals are for Unix")
    screen, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    with open(slave, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        run(verbose=1)
        stream.flush()
        shown = ""
        while not re.search(BAR, shown):
            assert select.select([screen], [], [], 10)[0], shown
            shown += os.read(screen, 1000).decode()
    os.close(screen)


def test_bar_in_a_notebook(monkeypatch, capsys):
    """The output of a kernel is no terminal, and shows bars all the same."""
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    run(verbose=1)
    assert re.search(BAR, capsys.readouterr().err)


def test_bar_of_a_long_run(impatient, monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    stream = terminal(monkeypatch)
    run()
    assert re.search(BAR, stream.getvalue())


def test_lines_where_there_is_no_bar(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    run(199, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3  # one for each 50 pairs
    for line in lines:
        assert re.match(r"skdp: \d+ of 199 pairs, about \d+ \w+ left", line)


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
    stream = terminal(monkeypatch)
    followed = progress.Progress(100, None, n_workers, later)
    for each in seconds:
        followed.add(1, each)
    assert stream.getvalue().splitlines() == ([] if line is None else [line])
    assert not later or followed.seconds_left == 196


@pytest.mark.parametrize("where", ["nobody looks", "short run", "asked for", "worker"])
def test_silence(monkeypatch, where):
    shown = io.StringIO() if where == "nobody looks" else Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "LONG", 1e9 if where == "short run" else -1.0)
    monkeypatch.setattr(progress, "PATIENCE", 1e9 if where == "short run" else -1.0)
    if where == "worker":
        worker = types.SimpleNamespace(name="LokyProcess-1")
        monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    run(verbose=0 if where == "asked for" else None)
    assert shown.getvalue() == ""
