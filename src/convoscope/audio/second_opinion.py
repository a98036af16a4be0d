"""Two more models of what people hear, where `pip install --no-deps speechmos` has put them: of noise, and of losses.

The package itself is not imported: it would need librosa, and its packet loss score is drawn by chance.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WINDOW = 144_160
"""9.01 s at 16 kHz, as DNSMOS was trained; shorter speech is repeated."""
_HOP = 72_080
_BAK = (-0.13166888, 1.60915514, -0.39604546)
"""From the output of the network to the scale of people, by the makers of DNSMOS P.835."""
_RATERS = 15
_SEED = 20_230_820


@cache
def _session(file: Path) -> Any:
    from convoscope.audio.quality import _session as session

    return session(file)


def background(folder: Path, samples: NDArray[np.float32]) -> float:
    """DNSMOS BAK of speech of 16 kHz, from 1 to 5: how little the noise behind it disturbs."""
    import numpy as np

    session = _session(folder / "dnsmos_models" / "sig_bak_ovr.onnx")
    if len(samples) < _WINDOW:
        samples = np.tile(samples, -(-_WINDOW // max(1, len(samples))))[:_WINDOW]
    count = -(-(len(samples) - _WINDOW) // _HOP) + 1
    starts = np.linspace(0, len(samples) - _WINDOW, count).astype(int).tolist()
    raw = [float(session.run(None, {"input_1": samples[None, at : at + _WINDOW]})[0][0][1]) for at in starts]
    return float(np.mean([np.polyval(_BAK, one) for one in raw]))


def packet_loss(folder: Path, samples: NDArray[np.float32]) -> float:
    """PLCMOS of speech of 16 kHz, from 1 to 5: how little of it was lost. Its raters are drawn with a fixed seed."""
    import numpy as np

    session = _session(folder / "plcmos_models" / "plcmos_v2.onnx")
    padded = np.pad(samples, (256, 512))
    frames = np.lib.stride_tricks.sliding_window_view(padded, 512)[::256][: -(-(len(samples) + 256) // 256)]
    amplitude = np.abs(np.fft.rfft(frames * np.hamming(513)[:512], axis=1)).astype(np.float64)
    power = amplitude**2
    is_zero = power == 0
    least = float(power[~is_zero].min()) if not is_zero.all() else 1e-8
    features = (np.log(np.where(is_zero, least * 10**-12, power)) / 20).astype(np.float32)
    raters = np.random.default_rng(_SEED).standard_normal((_RATERS, 1, 64)).astype(np.float32)
    inputs = features[None, None]
    scores = [
        float(np.ravel(session.run(None, {"degraded_audio": inputs, "rater_embed": one})[0])[0]) for one in raters
    ]
    return sum(scores) / _RATERS
