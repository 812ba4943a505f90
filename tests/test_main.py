"""``python -m skdp budget`` shows a ledger and leaves it as it is."""

import runpy
import sys

import pytest

from skdp import PrivacyGuarantee
from skdp.__main__ import main
from skdp.accounting import PrivacyAccountant


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.db"
    accountant = PrivacyAccountant(path, epsilon=3.0)
    accountant.spend(PrivacyGuarantee(epsilon=1.0, gamma=0.05), label="a mean, of incomes")
    accountant.spend(PrivacyGuarantee(epsilon=0.5))
    return str(path)


def test_a_table_with_the_total_and_what_is_left(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["skdp", "budget", path])
    monkeypatch.delitem(sys.modules, "skdp.__main__")
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module("skdp", run_name="__main__")
    output = capsys.readouterr().out
    lines = output.splitlines()
    assert lines[0].split() == ["time", "label", "epsilon", "delta", "gamma", "law"]
    assert "a mean, of incomes" in lines[1]
    assert lines[3:] == ["", *str(PrivacyAccountant.open(path)).splitlines()]
    assert "spent: (epsilon=1.5, gamma=0.05) for 2 releases" in output


def test_long_labels_are_cut_in_the_table_only(tmp_path, capsys):
    accountant = PrivacyAccountant(tmp_path / "x.db", epsilon=3.0)
    accountant.spend(
        PrivacyGuarantee(epsilon=1.0), label=f"coef_ of Pipeline(A(), {'a' * 500}, B())"
    )
    assert main(["budget", str(tmp_path / "x.db")]) == 0
    output = capsys.readouterr().out
    assert " B: coef_ " in output
    assert max(map(len, output.splitlines())) < 150


def test_no_ledger(tmp_path, capsys):
    assert main(["budget", str(tmp_path / "none.db")]) == 1
    assert "no such file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
