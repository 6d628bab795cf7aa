"""Speech: mel-frequency cepstra of the frames of spoken prompts, a set of low dimension."""

from __future__ import annotations

import io
import re
import wave

import numpy as np
import numpy.typing as npt

from datasets import packages, rows
from datasets.errors import DataError
from datasets.layout import VectorSet
from datasets.workshop import Workshop

PACKAGES = tuple(f"asterisk-core-sounds-{language}-wav" for language in ("en", "es", "fr", "it", "ru"))
RATE = 8000
WINDOW, HOP = 200, 80  # 25 ms every 10 ms
TRANSFORM = 256
MELS, CEPSTRA = 26, 13
QUERIES = 10_000


def make(shop: Workshop) -> VectorSet:
    """13 cepstra and their slopes per frame; queries are from recordings that give nothing to train."""
    frames: list[npt.NDArray[np.float32]] = []
    used = []
    for package in PACKAGES:
        archive = packages.debian(shop, package)
        used.append(archive.name)
        before = len(frames)
        for _, raw in sorted(packages.debian_files(archive, re.compile(r"\.wav$").search)):
            signal = samples(raw)
            if signal is not None:
                frames.append(cepstra(signal))
        if len(frames) == before:
            raise DataError(f"the Debian package {package} holds no prompt: this suite's version differs, use another")
        shop.say(f"  {package}: {sum(map(len, frames[before:]))} frames")
    vectors = np.concatenate(frames)
    recordings = np.repeat(np.arange(len(frames)), [len(each) for each in frames])
    mean, deviation = vectors.mean(0, dtype=np.float64), vectors.std(0, dtype=np.float64)
    train, test = rows.held_out_by_group(((vectors - mean) / deviation).astype(np.float32), QUERIES, recordings)
    return VectorSet(
        train,
        test,
        "euclidean",
        source="MFCC frames (13 cepstra + 13 slopes) computed here of the spoken prompts in the "
        f"Debian packages {', '.join(used)}",
        licence="recordings CC BY-SA 3.0 (Digium / Allison Smith, June Wallack and others)",
        recipe="25 ms windows every 10 ms at 8 kHz, silence dropped, each dimension standardised; "
        "queries from recordings that give nothing to train",
    )


def samples(raw: bytes) -> npt.NDArray[np.float64] | None:
    """The samples of a WAV file; None where it is not 16 bits, mono, 8 kHz."""
    with wave.open(io.BytesIO(raw)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            return None
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64)


def cepstra(signal: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Cepstra c0..c12 and their slopes over five frames, of every frame that is not silent."""
    if len(signal) < WINDOW + 8 * HOP:
        return np.empty((0, 2 * CEPSTRA), np.float32)
    sharpened = np.append(signal[0], signal[1:] - 0.97 * signal[:-1])
    frames = np.lib.stride_tricks.sliding_window_view(sharpened, WINDOW)[::HOP] * np.hamming(WINDOW)
    power = np.abs(np.fft.rfft(frames, TRANSFORM)) ** 2 / TRANSFORM
    energy = np.log(power @ _mel_bank(power.shape[1]).T + 1.0)
    i, j = np.arange(CEPSTRA)[:, None], np.arange(MELS)
    cosines = np.sqrt(2 / MELS) * np.cos(np.pi * i * (2 * j + 1) / (2 * MELS))
    c = energy @ cosines.T
    pad = np.pad(c, ((2, 2), (0, 0)), mode="edge")
    slope = (2 * (pad[4:] - pad[:-4]) + (pad[3:-1] - pad[1:-3])) / 10
    loud = power.sum(1)
    voiced: npt.NDArray[np.float32] = np.hstack([c, slope])[loud > loud.max() * 1e-4].astype(np.float32)
    return voiced


def _mel_bank(bins: int) -> npt.NDArray[np.float64]:
    """Triangular filters from 64 Hz to half the rate, evenly spaced in mel."""
    mel = np.linspace(2595 * np.log10(1 + 64 / 700), 2595 * np.log10(1 + RATE / 2 / 700), MELS + 2)
    hz = 700 * (10 ** (mel / 2595) - 1) * TRANSFORM / RATE  # in bins of the transform
    k = np.arange(bins)
    rising = (k - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    falling = (hz[2:, None] - k) / (hz[2:] - hz[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling))
