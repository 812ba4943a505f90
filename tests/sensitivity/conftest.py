"""What tests of sampling share."""

import pytest

from skdp.sensitivity import execution


@pytest.fixture
def long_job(monkeypatch):
    """Start workers whatever the job takes."""
    monkeypatch.setattr(execution, "STARTUP", 0.0)
