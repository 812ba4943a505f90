"""A guarantee says what was promised, refuses what cannot be, and survives storage."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp import PrivacyGuarantee
from skdp.accounting import NeighboringRelation

probabilities = st.floats(0, 1, exclude_min=True, exclude_max=True)


@st.composite
def guarantees(draw):
    """Any guarantee that may be stated."""
    gamma = draw(st.just(0.0) | probabilities)
    return PrivacyGuarantee(
        epsilon=draw(st.floats(0, exclude_min=True)),
        delta=draw(st.floats(0, 1, exclude_max=True)),
        gamma=gamma,
        confidence=draw(st.none() | probabilities) if gamma else None,
        n_samples=draw(st.none() | st.integers(1, 10**9)),
        oracle=draw(st.none() | st.text("Oracle")),
        seeded=draw(st.booleans()),
    )


@given(guarantees())
def test_storing_changes_nothing(guarantee):
    stored = json.loads(json.dumps(guarantee.to_dict()))
    assert PrivacyGuarantee.from_dict(stored) == guarantee


@given(guarantees())
def test_text_names_every_condition(guarantee):
    text, infinite = str(guarantee), math.isinf(guarantee.epsilon)
    assert text.startswith("No privacy") == infinite
    assert ("gamma=" in text) == (guarantee.gamma > 0 and not infinite)
    assert ("delta=" in text) == (guarantee.delta > 0 and not infinite)
    said = "".join(text.split())  # lines are wrapped anywhere
    assert ("withconfidence" in said) == (guarantee.confidence is not None and not infinite)
    assert ("seed" in said) == (guarantee.seeded and not infinite)
    assert ("factor" in said) == (not infinite)
    assert guarantee.short.lower() == text.partition("\n")[0].replace(": ", ", ", 1).lower()


@pytest.mark.loop(
    ("name", "values"),
    [
        ("epsilon", {"epsilon": 0.0}),
        ("epsilon", {"epsilon": -1.0}),
        ("epsilon", {"epsilon": math.nan}),
        ("delta", {"delta": 1.0}),
        ("delta", {"delta": -1e-9}),
        ("delta", {"delta": math.nan}),
        ("gamma", {"gamma": 1.0}),
        ("gamma", {"gamma": -1e-9}),
        ("gamma", {"gamma": math.nan}),
        ("confidence", {"confidence": 0.95}),
        ("confidence", {"gamma": 0.05, "confidence": 0.0}),
        ("confidence", {"gamma": 0.05, "confidence": 1.0}),
        ("n_samples", {"n_samples": 0}),
    ],
)
def test_an_impossible_promise_is_refused(name, values):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of PrivacyGuarantee must"):
        PrivacyGuarantee(**({"epsilon": 1.0} | values))


def test_a_promise_cannot_be_changed():
    guarantee = PrivacyGuarantee(epsilon=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.epsilon = 0.1
    assert guarantee == PrivacyGuarantee(epsilon=1.0)
    assert guarantee.relation is NeighboringRelation.REPLACE_ONE


def test_an_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="add-or-remove"):
        PrivacyGuarantee.from_dict({"epsilon": 1.0, "relation": "add-or-remove"})
