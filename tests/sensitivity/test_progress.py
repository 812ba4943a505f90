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

from skdp import LaplaceMechanism, SensitivitySampler, plan_release
from skdp.sensitivity import progress
from skdp.sensitivity.calibration import order_statistic
from skdp.sensitivity.pairs import Outcomes
from skdp.sensitivity.progress import follow


class Terminal(io.StringIO):
    def isatty(self):
        return True


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 1))


def chunks_of(norms, size):
    for start in range(0, len(norms), size):
        part = np.array(norms[start : start + size])
        yield Outcomes.of_norms(part, (), part == 0)


def terminal(monkeypatch):
    """Make standard error look like a terminal, for the rest of the test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_bar_in_a_terminal(monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    stream = terminal(monkeypatch)
    SensitivitySampler(normal, gamma=0.2, verbose=1).sample(np.mean, 4, "l1")
    shown = stream.getvalue()
    assert "49/49" in shown
    assert "pair/s" in shown
    assert "sensitivity" in shown


BAR = r"49/49 \[[\d:]+<[\d:]+, .*pair/s, sensitivity [\d.]+\]"  # time, time left, rate, estimate


def test_bar_in_a_pseudo_terminal(monkeypatch):
    """The estimate stands at the end of the bar, where narrow terminals would cut it off."""
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    termios = pytest.importorskip("termios", reason="pseudo-terminals are for Unix")
    screen, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    with open(slave, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        estimate = SensitivitySampler(normal, gamma=0.2, verbose=1).sample(np.mean, 4, "l1")
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
    SensitivitySampler(normal, gamma=0.2, verbose=1).sample(np.mean, 4, "l1")
    assert re.search(BAR, capsys.readouterr().err)


def test_line_per_chunk_elsewhere(capsys):
    estimate = SensitivitySampler(normal, n_pairs=199, verbose=1).sample(np.mean, 4, "l1")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" pairs")[0] for line in lines] == [
        f"SensitivitySampler: {count} of 199" for count in (50, 100, 150, 199)
    ]
    assert lines[-1].endswith(f"0 s left, sensitivity {estimate.value:.4g}")


def test_lines_in_a_terminal_without_tqdm(monkeypatch):
    stream = terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    SensitivitySampler(normal, gamma=0.2, verbose=1).sample(np.mean, 4, "l1")
    assert "49 of 49 pairs" in stream.getvalue()


def test_running_value_is_the_order_statistic_of_the_pairs_so_far(capsys):
    norms = list(np.random.default_rng(0).permutation(99) + 1.0)
    norms[70] = np.inf
    statistic = order_statistic(0.1, 99)  # k = 90
    passed = list(follow(chunks_of(norms, 33), 99, statistic, verbose=1))
    assert list(Outcomes.join(passed).norms) == norms
    shown = [float(line.split()[-1]) for line in capsys.readouterr().err.splitlines()]
    expected = [np.sort(norms[:count])[k - 1] for count, k in ((33, 30), (66, 60), (99, 90))]
    assert shown == expected


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)


def test_silence_where_nobody_looks(impatient, capsys):
    SensitivitySampler(normal, gamma=0.2).sample(np.mean, 4, "l1")
    assert capsys.readouterr().err == ""


def test_silence_of_a_short_run(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 1e9)
    stream = terminal(monkeypatch)
    SensitivitySampler(normal, gamma=0.2).sample(np.mean, 4, "l1")
    assert stream.getvalue() == ""


def test_silence_where_it_is_asked_for(impatient, monkeypatch):
    stream = terminal(monkeypatch)
    SensitivitySampler(normal, gamma=0.2, verbose=0).sample(np.mean, 4, "l1")
    assert stream.getvalue() == ""


def test_silence_in_a_worker(impatient, monkeypatch):
    stream = terminal(monkeypatch)
    worker = types.SimpleNamespace(name="LokyProcess-1")
    monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    SensitivitySampler(normal, gamma=0.2).sample(np.mean, 4, "l1")
    assert stream.getvalue() == ""


def test_a_long_run_shows_itself(impatient, monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    stream = terminal(monkeypatch)
    SensitivitySampler(normal, n_pairs=99).sample(np.mean, 4, "l1")
    assert "99/99" in stream.getvalue()


def test_pilots_and_pairs_are_one_count(impatient, monkeypatch):
    pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    stream = terminal(monkeypatch)
    plan_release(
        lambda X: np.array([X.mean(), X.std()]),
        n_samples=9,
        mechanism=LaplaceMechanism(1.0, code="learned"),
        sensitivity=SensitivitySampler(normal, n_pairs=99, random_state=0),
    )
    shown = stream.getvalue()
    assert re.findall(r"(\d+)/(\d+) \[", shown)[-1] == ("197", "197")  # the first pilot came before
    assert shown.count("\n") == 1


def test_one_line_without_tqdm(impatient, monkeypatch):
    stream = terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    SensitivitySampler(normal, n_pairs=199).sample(np.mean, 4, "l1")
    (line,) = stream.getvalue().splitlines()
    assert re.match(r"SensitivitySampler: \d+ of 199 pairs", line)
    assert "n_jobs" in line
    assert "memory" in line
