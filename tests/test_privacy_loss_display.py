"""The picture of a privacy loss shows what was estimated."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks.gallery import LaplaceNoise, RandomizedResponse
from skdp import PrivacyLossDisplay
from skdp.audit import estimate_privacy_loss


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def outputs(mechanism, pair, n=5000):
    rng = np.random.default_rng(0)
    return [mechanism(x, n, rng) for x in pair]


def test_densities_above_and_loss_below():
    x, y = outputs(LaplaceNoise(1.0), (0.0, 1.0))
    display = PrivacyLossDisplay.from_loss(estimate_privacy_loss(x, y), claimed_epsilon=1.0).plot(
        names=("a", "b")
    )
    densities, losses = display.axes_
    assert display.figure_ is densities.figure
    drawn = [line.get_ydata() for line in densities.lines if len(line.get_xdata())]
    assert np.array_equal(drawn[0], display.loss.density_x)
    assert np.array_equal(drawn[1], display.loss.density_y)
    assert [text.get_text() for text in densities.get_legend().get_texts()] == ["a", "b"]
    least, known, claim = (np.asarray(line.get_ydata()) for line in losses.lines)
    assert np.array_equal(np.isnan(least), ~display.loss.visible)
    assert np.array_equal(np.isnan(known), display.loss.floored)
    assert np.nanmax(least) == display.loss.loss[display.loss.visible].max()
    assert claim.tolist() == [1.0, 1.0]
    assert densities.get_ylabel() == "density"


def test_atoms_are_bars_with_error_bars():
    x, y = outputs(RandomizedResponse(0.75), (0, 1))
    figure, axes = plt.subplots(2, 1)
    display = PrivacyLossDisplay.from_loss(estimate_privacy_loss(x, y)).plot(ax=axes)
    assert display.figure_ is figure
    assert axes[0].get_ylabel() == "probability"
    assert len(axes[0].containers) == 2
    assert len(axes[1].containers) == 1
    assert axes[1].containers[0].lines[0].get_ydata() == pytest.approx(display.loss.loss)


def test_atoms_and_density_are_drawn_together():
    x, y = outputs(LaplaceNoise(1.0, clip=(0.0, 1.0)), (0.0, 1.0))
    display = PrivacyLossDisplay.from_loss(estimate_privacy_loss(x, y)).plot()
    assert len(display.axes_[1].containers) == 1
    assert len(display.axes_[1].collections) >= 1


def test_two_dimensions_cannot_be_drawn():
    rng = np.random.default_rng(0)
    loss = estimate_privacy_loss(rng.normal(size=(500, 2)), rng.normal(size=(500, 2)))
    with pytest.raises(ValueError, match=r"outputs of one dimension\. Got 2"):
        PrivacyLossDisplay.from_loss(loss)
