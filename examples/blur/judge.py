"""Judge of blur: noisy images of odd sizes and bell-shaped weights, compared pixel by pixel."""

import numpy as np

from outpace.task import Output


def bell(radius: int, width: float) -> np.ndarray:
    """Whole weights in the shape of a bell that sum to 256: what rounding leaves over goes to the middle."""
    weights = np.rint(np.exp(-0.5 * (np.arange(-radius, radius + 1) / width) ** 2) * 100)
    weights = np.floor(weights * 256 / weights.sum()).astype(np.int32)
    weights[radius] += 256 - weights.sum()
    return weights


def make_input(rng: np.random.Generator) -> dict:
    height, width = rng.integers(120, 261, 2).tolist()
    radius = int(rng.integers(1, 8))
    noise = rng.integers(0, 1 << 64, (height * width + 7) // 8, dtype=np.uint64).view(np.uint8)
    image = noise[: height * width].reshape(height, width)
    # Some rows are all white: sums must hold the largest values too.
    image |= np.where(rng.random((height, 1)) < 0.2, 255, 0).astype(np.uint8)
    return picture(image, bell(radius, float(rng.uniform(0.3, 0.8)) * radius))


def picture(image: np.ndarray, weights: np.ndarray) -> dict:
    height, width = image.shape
    return {
        "image": image,
        "blurred": Output((height, width), "uint8"),
        "height": height,
        "width": width,
        "weights": weights.astype(np.int32),
        "radius": len(weights) // 2,
    }


def edge_inputs() -> list[dict]:
    rng = np.random.default_rng(1)
    shapes = [(1, 1), (1, 40), (40, 1), (3, 5), (2, 300), (300, 2), (16, 16), (31, 33), (17, 2100)]
    filters = [bell(r, 0.6 * r) for r in (1, 2, 7, 16)] + [np.array([256]), np.array([128, 0, 128])]
    pictures = [
        picture(rng.integers(0, 256, shape, dtype=np.uint8), weights) for shape in shapes for weights in filters
    ]
    return [*pictures, picture(np.full((50, 61), 255, np.uint8), bell(7, 3.0))]
