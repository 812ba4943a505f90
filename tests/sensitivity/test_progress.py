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

BAR = r"49/49 \[[\d:]+<[\d:]+, .*pair/s, sensitivity [\d.]+\]"  # time, time left, rate, estimate


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
    """The estimate stands at the end of the bar, where narrow terminals would cut it off."""
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    termios = pytest.importorskip("termios", reason="pseudo-terminals are for Unix")
    screen, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    with open(slave, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        estimate = run(verbose=1)
        stream.flush()
        shown = ""
        while f"sensitivity {estimate.value:.4g}]" not in shown:
            assert select.select([screen], [], [], 10)[0], shown
            shown += os.read(screen, 1000).decode()
    os.close(screen)
    assert re.search(BAR, shown)


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


def test_lines_elsewhere_hold_the_order_statistic_of_the_pairs_so_far(capsys):
    estimate = run(199, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    counts = (50, 100, 150, 199)
    k = estimate.order_statistic.k
    for line, count in zip(lines, counts, strict=True):
        so_far = np.sort(estimate.norms[:count])[-(-k * count // 199) - 1]
        assert line.startswith(f"SensitivitySampler: {count} of 199 pairs")
        assert line.endswith(f"sensitivity {so_far:.4g}")


@pytest.mark.parametrize(("verbose", "n_lines"), [(1, 4), (None, 1)])
def test_lines_in_a_terminal_without_tqdm(impatient, monkeypatch, verbose, n_lines):
    stream = terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    run(199, verbose=verbose)
    lines = stream.getvalue().splitlines()
    assert len(lines) == n_lines
    assert re.match(r"SensitivitySampler: \d+ of 199 pairs", lines[0])
    assert ("n_jobs" in lines[0]) is (verbose is None)


@pytest.mark.parametrize("where", ["nobody looks", "short run", "asked for", "worker"])
def test_silence(monkeypatch, where):
    shown = io.StringIO() if where == "nobody looks" else Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "PATIENCE", 1e9 if where == "short run" else -1.0)
    if where == "worker":
        worker = types.SimpleNamespace(name="LokyProcess-1")
        monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    run(verbose=0 if where == "asked for" else None)
    assert shown.getvalue() == ""
