"""Two more opinions on speech, where the package with their models is installed."""

from __future__ import annotations

import pytest

from support import sounds

np = sounds.np

from convoscope.audio.quality import second_opinion  # noqa: E402
from convoscope.audio.second_opinion import background, packet_loss  # noqa: E402


def test_noise_and_losses_move_the_right_one() -> None:
    folder = second_opinion()
    if folder is None:
        pytest.skip("speechmos is not installed: pip install --no-deps speechmos")
    clean = sounds.prompt("vm-rec-temp")
    noisy, lost = sounds.with_noise(clean, 10).astype(np.float32), clean.copy()
    for at in range(4000, len(lost) - 640, 4000):
        lost[at : at + 640] = 0
    # What the package itself gives for this prompt: BAK 4.137 and 1.776, and for losses about 4.64, drawn by chance.
    assert background(folder, clean) == pytest.approx(4.137, abs=0.01)
    assert background(folder, noisy) == pytest.approx(1.776, abs=0.1)
    assert packet_loss(folder, clean) == pytest.approx(4.64, abs=0.08)
    assert packet_loss(folder, lost) < packet_loss(folder, clean) - 0.5
    assert packet_loss(folder, clean) == packet_loss(folder, clean)
