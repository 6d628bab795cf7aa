"""Where the built-in slots lie: one module per instruction set, beside the extension."""

from pathlib import Path

from outpace.ann import _native


def folder() -> str:
    return str(Path(_native.__file__).parent / "slots")
