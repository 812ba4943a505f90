"""``python -m skdp budget`` shows a ledger and leaves it as it is."""

import csv
import io
import json
import math
import os
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
    assert lines[0].split() == ["time", "label", "n_releases", "epsilon", "delta", "gamma", "law"]
    assert "a mean, of incomes" in lines[1]
    assert lines[3:] == ["", *str(PrivacyAccountant.open(path)).splitlines()]
    assert "spent: (epsilon=1.5, gamma=0.05) for 2 releases" in output


def test_the_total_of_each_block(tmp_path, capsys):
    ledger = PrivacyAccountant(tmp_path / "ledger.db", epsilon=9.0)
    for day, parts in (("Monday", "ab"), ("Tuesday", "a")):
        for part in parts:
            with ledger.as_default(day):
                ledger.part("town", part).spend(PrivacyGuarantee(epsilon=0.5), label="mean")
    ledger.spend(PrivacyGuarantee(epsilon=1.0), label="mean")
    assert main(["budget", str(tmp_path / "ledger.db")]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in ("Monday: (epsilon=0.5) for 2 releases", "Tuesday: (epsilon=0.5) for 1 release"):
        assert any(each.startswith(line) for each in lines)


def test_csv_and_json(path, capsys):
    assert main(["budget", path, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["label"], row["epsilon"]) for row in rows] == [
        ("a mean, of incomes", "1.0"),
        ("", "0.5"),
    ]
    assert main(["budget", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total"]["epsilon"], found["remaining"]) == (1.5, 1.5)
    assert found["limits"] == {"epsilon": 3.0, "delta": 0.0, "gamma": None, "slack": 0.0}
    assert found["releases"][0]["gamma"] == 0.05


def test_a_reader_that_leaves_is_no_error(path, monkeypatch, capsys):
    for form in ([], ["--csv"], ["--json"], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as pipe, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", pipe)
            assert main(["budget", path, *form]) == 141
    assert capsys.readouterr().err == ""


def test_long_labels_are_cut_in_the_table_only(tmp_path, capsys):
    accountant = PrivacyAccountant(tmp_path / "x.db", epsilon=3.0)
    accountant.spend(
        PrivacyGuarantee(epsilon=1.0), label=f"coef_ of Pipeline(A(), {'a' * 500}, B())"
    )
    assert main(["budget", str(tmp_path / "x.db")]) == 0
    output = capsys.readouterr().out
    assert " B: coef_ " in output
    assert max(map(len, output.splitlines())) < 150
    assert main(["budget", str(tmp_path / "x.db"), "--csv"]) == 0
    assert "a" * 500 in capsys.readouterr().out


def test_no_ledger(tmp_path, capsys):
    assert main(["budget", str(tmp_path / "none.db")]) == 1
    assert "no such file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    PrivacyAccountant(tmp_path / "x.db", epsilon=math.inf)
    assert main(["budget", str(tmp_path / "x.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["limits"]["epsilon"] == "inf"
