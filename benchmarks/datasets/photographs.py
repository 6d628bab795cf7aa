"""Photographs: SIFT descriptors of wallpapers, textures and documentation images in Debian packages."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from datasets import packages, rows
from datasets.errors import DataError
from datasets.layout import VectorSet
from datasets.modules import need
from datasets.whole import whole
from datasets.workshop import SEED, Workshop

# Package, and which of its files to take: photographs, some paintings, photographed textures.
PACKAGES = {
    "lomiri-wallpapers-16.04": r"\.jpg$",
    "lomiri-wallpapers-20.04": r"\.jpg$",
    "lxqt-themes": r"/wallpapers/.*\.(jpg|png)$",
    "mate-backgrounds": r"/nature/.*\.jpg$|/abstract/(?!.*_\d+x\d+).*\.(jpg|png)$",
    "ukui-wallpapers": r"\.(jpg|png)$",
    "plasma-workspace-wallpapers": r"/contents/images/(5120x2880|3840x2160|3200x2000|2560x1600)\.(jpg|png)$",
    "opencv-doc": r"/examples/.*\.(jpg|png)$",
    "tuxpaint-stamps-default": r"\.png$",
    "cube2-data": r"/packages/(?!.*(_n|_nm|_norm|_normal|normals|_spec|_s|_mask|_bump|_local|"
    r"_glow|font\w*)\.)(?!.*(/hud/|/icons/|/fonts/)).*\.(jpg|png)$",
}
MOST_PER_IMAGE = 8000
MOST_PER_TEXTURE = {"cube2-data": 1000}  # so that photographs prevail
LONGEST_SIDE = 1600
CONTRAST = 0.02  # half of OpenCV's threshold: more keypoints per image
QUERIES = 5_000


@dataclass(frozen=True)
class Descriptors:
    """The descriptors of one package: a row each, the number of its image, and the images' names."""

    rows: npt.NDArray[np.uint8]
    images: npt.NDArray[np.int32]
    names: tuple[str, ...]


def make(shop: Workshop) -> VectorSet:
    """Descriptors of 128 bytes; queries are from images that give nothing to train."""
    cv2 = need("cv2")
    cv2.setNumThreads(shop.threads)
    parts, groups, used = [], [], []
    labels: dict[str, int] = {}
    for package in PACKAGES:
        archive = packages.debian(shop, package)
        found = _descriptors(shop, cv2, package)
        vectors, images = found.rows, found.images
        if package in MOST_PER_TEXTURE:
            chosen = some_of_each(images, MOST_PER_TEXTURE[package])
            vectors, images = vectors[chosen], images[chosen]
        ids = np.array([labels.setdefault(group(package, name), len(labels)) for name in found.names])
        parts.append(vectors)
        groups.append(ids[images])
        used.append(archive.name)
        shop.say(f"  {package}: {len(found.names)} images, {len(vectors)} descriptors")
    train, test = rows.held_out_by_group(np.concatenate(parts), QUERIES, np.concatenate(groups))
    return VectorSet(
        train,
        test,
        "euclidean",
        source=f"SIFT descriptors (OpenCV {cv2.__version__}) of photographs and textures in the "
        f"Debian packages {', '.join(used)}",
        licence="descriptors computed here; images under the packages' licences (see "
        "/usr/share/doc/<package>/copyright)",
        recipe=f"cv2.SIFT_create(contrastThreshold={CONTRAST}), longest side at most {LONGEST_SIDE}, at most "
        f"{MOST_PER_IMAGE} per image (1,000 per game texture); queries from images that give nothing to train",
    )


def group(package: str, name: str) -> str:
    """One group for names that differ only in numbers or a last A/B, L/R: frames, sizes and stereo pairs."""
    return package + re.sub(r"\d+|[ABLR]$", "", name.rpartition(".")[0])


def some_of_each(images: npt.NDArray[np.int32], most: int) -> npt.NDArray[np.int64]:
    """At most this many positions of each image, chosen at random, ordered by image."""
    order = np.random.default_rng(SEED).permutation(len(images))
    order = order[np.argsort(images[order], kind="stable")]
    first = np.searchsorted(images[order], images[order])
    return order[np.arange(len(images)) - first < most]


def _descriptors(shop: Workshop, cv2: Any, package: str) -> Descriptors:
    """Of one package; kept, for all of them take ten minutes."""
    path = shop.path("sift", f"{package}.npz")
    if path.exists():
        with np.load(path) as stored:
            return Descriptors(stored["desc"], stored["img"], tuple(stored["names"].tolist()))
    made = _computed(shop, cv2, package)
    with whole(path) as temporary, temporary.open("wb") as file:
        np.savez(file, desc=made.rows, img=made.images, names=np.array(made.names))
    return made


def _computed(shop: Workshop, cv2: Any, package: str) -> Descriptors:
    files = []
    seen = set()
    for name, raw in packages.debian_files(packages.debian(shop, package), re.compile(PACKAGES[package], re.I).search):
        digest = hashlib.blake2b(raw).digest()
        if len(raw) > 8000 and digest not in seen:  # smaller files are icons
            seen.add(digest)
            files.append((name, raw))
    sift = cv2.SIFT_create(contrastThreshold=CONTRAST)
    parts, images = [], []
    names: list[str] = []
    for name, raw in sorted(files):
        grey = _grey(cv2, raw)
        if grey is None:
            continue
        _, found = sift.detectAndCompute(grey, None)
        if found is None or len(found) < 20:
            continue
        if len(found) > MOST_PER_IMAGE:
            rng = np.random.default_rng(SEED + len(names))
            found = found[np.sort(rng.choice(len(found), MOST_PER_IMAGE, replace=False))]
        parts.append(np.clip(np.round(found), 0, 255).astype(np.uint8))
        images.append(np.full(len(found), len(names), np.int32))
        names.append(name)
    if not parts:
        raise DataError(
            f"the Debian package {package} holds no usable picture: this suite's version differs, use another"
        )
    return Descriptors(np.concatenate(parts), np.concatenate(images), tuple(names))


def _grey(cv2: Any, raw: bytes) -> npt.NDArray[np.uint8] | None:
    """The picture in grey, no larger than LONGEST_SIDE; None where it is no picture or a tiny one."""
    picture = cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_UNCHANGED)
    if picture is None or min(picture.shape[:2]) < 128:
        return None
    if picture.dtype != np.uint8:
        picture = (picture // 257).astype(np.uint8)
    if picture.ndim == 3 and picture.shape[2] == 4:
        # Cut-outs are laid on mid grey: on black or white their outline would be all that is seen.
        alpha = picture[:, :, 3:].astype(np.float32) / 255
        picture = (picture[:, :, :3] * alpha + 128 * (1 - alpha)).astype(np.uint8)
    if picture.ndim == 3:
        picture = cv2.cvtColor(picture[:, :, :3], cv2.COLOR_BGR2GRAY)
    scale = LONGEST_SIDE / max(picture.shape)
    if scale < 1:
        picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return picture  # type: ignore[no-any-return]
