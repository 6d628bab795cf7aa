"""Modules: the Python modules that only some sets need, and the pip packages that bring them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from datasets.errors import DataError

PIP = {
    "h5py": "h5py",
    "cv2": "opencv-python-headless",
    "torch": "torch==2.13.0",  # the version the published sets were made with; its CPU build is enough
    "tokenizers": "tokenizers",
    "safetensors": "safetensors",
}


def need(module: str) -> Any:
    """The module, imported."""
    check([module])
    return importlib.import_module(module)


def check(modules: Iterable[str]) -> None:
    """All of them can be imported; asked before the work starts, as the first may be used only after an hour."""
    missing = []
    for module in modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise _broken(module, error) from error
            missing.append(module)
        except ImportError as error:
            raise _broken(module, error) from error
    if missing:
        names = " ".join(PIP[module] for module in missing)
        hint = " (the CPU build of torch is enough)" if "torch" in missing else ""
        raise DataError(f"missing Python modules: {', '.join(missing)}; run `pip install {names}`{hint}")


def _broken(module: str, error: ImportError) -> DataError:
    return DataError(
        f"the Python module {module} is installed but cannot be imported: {error}; "
        f"run `pip install --force-reinstall {PIP[module]}`, or install what the message names"
    )
