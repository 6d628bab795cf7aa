"""Modules of one's own: a slot compiled alone serves an index, and what is no such module is refused with a reason."""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel_programs import ANN, FLAGS, run
from outpace.ann import Index

REFINE = (ANN / "slots" / "refine.cpp").read_text()
VECTORS = np.random.default_rng(1).standard_normal((500, 12)).astype(np.float32)
QUERIES = VECTORS[:40] + np.float32(0.1)

Compile = Callable[[str], Path]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """A folder for `modules=` whose refine.so is made from a source."""

    def make(source: str) -> Path:
        (tmp_path / "refine.cpp").write_text(source)
        march = ["-march=x86-64-v2"] if platform.machine() == "x86_64" else []
        kind = ["-DOUTPACE_ISA=scalar", "-DOUTPACE_ISA_LEVEL=0", f"-I{ANN / 'slots'}"]
        shared = ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-o", tmp_path / "refine.so"]
        ended = run(["g++", *FLAGS, *march, *kind, *shared, tmp_path / "refine.cpp"])
        assert ended.returncode == 0, ended.stderr
        return tmp_path

    return make


def changed(old: str, new: str) -> str:
    """The shipped refine slot with one thing changed."""
    assert old in REFINE
    return REFINE.replace(old, new)


def test_a_slot_compiled_alone_serves_an_index(compiled: Compile) -> None:
    doubled = compiled(changed("distance(ground->shape", "2 * distance(ground->shape"))
    own, built_in = Index.build(VECTORS, modules=doubled), Index.build(VECTORS)
    assert (own.stats()["modules"], built_in.stats()["modules"]) == ("refine", "")
    built_in.save(doubled / "an.index")
    loaded = Index.load(doubled / "an.index", modules=str(doubled))
    assert loaded.stats()["modules"] == "refine"
    assert pickle.loads(pickle.dumps(own)).stats()["modules"] == ""
    for index in (own, loaded):
        for mine, theirs in (
            (index.search(QUERIES, 10, effort=500), built_in.search(QUERIES, 10, effort=500)),
            (index.exact(QUERIES), built_in.exact(QUERIES)),
        ):
            np.testing.assert_array_equal(mine[0], theirs[0])
            np.testing.assert_allclose(mine[1], 2 * theirs[1], rtol=1e-5)


def test_a_slot_of_another_version_is_refused_until_it_is_compiled_again(compiled: Compile) -> None:
    folder = compiled(changed("{slot_version,", "{slot_version + 1,"))
    with pytest.raises(ValueError, match=r"refine\.so was compiled for slot version 3, .* has version 2; compile it"):
        Index.build(VECTORS, modules=folder)
    compiled(REFINE)
    assert Index.build(VECTORS, modules=folder).stats()["modules"] == "refine"


def test_a_module_that_exports_nothing_is_refused(compiled: Compile) -> None:
    with pytest.raises(ValueError, match=r"refine\.so does not export outpace_ann_refine\(\); see .*slots\.hpp"):
        Index.build(VECTORS, modules=compiled("static_assert(true);"))


def test_a_text_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "search.so").write_text("no module\n" * 100)
    with pytest.raises(ValueError, match=r"cannot load .*/search\.so: .*invalid ELF header"):
        Index.build(VECTORS, modules=tmp_path)


def test_a_folder_without_modules_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ValueError, match=f"'{folder}' holds none of construct.so, search.so, refine.so"):
            Index.build(VECTORS, modules=folder)


def test_a_module_given_instead_of_its_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "refine.so").touch()
    with pytest.raises(ValueError, match=r"refine\.so' is a file; give the folder that it lies in"):
        Index.build(VECTORS, modules=tmp_path / "refine.so")
