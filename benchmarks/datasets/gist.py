"""GIST: the descriptor of Oliva and Torralba (2001) for colour images of 32 x 32 pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

SIZE = 32
CELLS = 4  # per side
ORIENTATIONS = (8, 8, 4)  # of the Gabor filters, per scale
STRIDE = 2  # responses are sampled at every second pixel
DIMENSIONS = 3 * sum(ORIENTATIONS) * CELLS**2
BATCH = 250


def gist(images: npt.NDArray[np.uint8], say: Callable[[str], None] = lambda _: None) -> npt.NDArray[np.float32]:
    """(n, 32, 32, 3) to (n, 960): 3 colours x 20 Gabor filters x 4 x 4 cells."""
    real, imaginary = filter_bank()
    out = np.empty((len(images), DIMENSIONS), np.float32)
    side = SIZE // STRIDE // CELLS  # samples per side of a cell
    for start in range(0, len(images), BATCH):
        x = _even_contrast(images[start : start + BATCH].astype(np.float32).transpose(0, 3, 1, 2))
        count = len(x)
        x = x.reshape(count * 3, SIZE * SIZE)
        # |response|, in place: the responses of a batch are the largest arrays here.
        response = x @ real
        response *= response
        other = x @ imaginary
        other *= other
        response += other
        np.sqrt(response, out=response)
        cells = response.reshape(count, 3, -1, CELLS, side, CELLS, side).mean((4, 6))
        out[start : start + count] = cells.reshape(count, DIMENSIONS)
        if (start // BATCH) % 40 == 39:
            say(f"  GIST of {start + count}/{len(images)} images")
    return out


def filter_bank(pad: int = 16) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The linear part as two matrices, of the real and of the imaginary responses.

    An image is padded by reflection, filtered in the Fourier domain and sampled. All of that is linear, so the
    images with one bright pixel each give its matrix, and one product per batch replaces 20 transforms per image.
    """
    n = SIZE + 2 * pad
    radius, angle = _polar(n)
    sampled = np.arange(STRIDE // 2, SIZE, STRIDE) + pad
    pixels = np.eye(SIZE * SIZE, dtype=np.float32).reshape(-1, SIZE, SIZE)
    spectra = np.fft.fft2(np.pad(pixels, ((0, 0), (pad, pad), (pad, pad)), mode="symmetric"))
    out = []
    for scale, orientations in enumerate(ORIENTATIONS):
        for orientation in range(orientations):
            centre = 0.3 / 1.85**scale
            sharpness = 16 * orientations**2 / 32**2
            turned = angle + np.pi / orientations * orientation
            turned = turned + 2 * np.pi * (turned < -np.pi) - 2 * np.pi * (turned > np.pi)
            gabor = np.exp(-10 * 0.35 * (radius / n / centre - 1) ** 2 - 2 * sharpness * np.pi * turned**2)
            response = np.fft.ifft2(spectra * gabor)[:, sampled][:, :, sampled]
            out.append(response.reshape(SIZE * SIZE, -1).astype(np.complex64))
    matrix = np.concatenate(out, 1)
    return np.ascontiguousarray(matrix.real), np.ascontiguousarray(matrix.imag)


def _polar(n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    frequency = np.fft.fftfreq(n) * n
    fx, fy = np.meshgrid(frequency, frequency)
    return np.hypot(fx, fy), np.arctan2(fy, fx)


def _even_contrast(x: npt.NDArray[Any], pad: int = 5) -> npt.NDArray[Any]:
    """Logarithms, less their local mean, over their local deviation; local is a Gaussian of 4 cycles per image."""
    n = SIZE + 2 * pad
    frequency = np.fft.fftfreq(n) * n
    fx, fy = np.meshgrid(frequency, frequency)
    low = np.exp(-(fx**2 + fy**2) / (4 / np.sqrt(np.log(2))) ** 2)

    def blurred(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        return np.fft.ifft2(np.fft.fft2(values) * low).real.astype(np.float32)

    x = np.log1p(np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), mode="symmetric"))
    x = x - blurred(x)
    grey = x.mean(1, keepdims=True)
    x = x / (0.2 + np.sqrt(np.abs(blurred(grey**2))))
    return np.ascontiguousarray(x[:, :, pad:-pad, pad:-pad])
