"""Comparing answers: how a candidate's answer differs from the expected one, in a sentence."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np


def difference(expected: Any, got: Any, tolerance: float = 0.0) -> str:
    """Where `got` differs from `expected`, or "" when it does not.

    Numbers agree within `tolerance` relative to the expected value or, in an array, to the root mean square of the
    expected array where that is larger: elements that cancel to nearly nothing carry the rounding of the others.
    """
    return _difference(expected, got, tolerance, "answer")


def _difference(expected: Any, got: Any, tolerance: float, where: str) -> str:
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        return _array_difference(expected, got, tolerance, where)
    if _kind(expected) != _kind(got):
        return f"{where} is a {_kind(got)} ({brief(got)}) where a {_kind(expected)} ({brief(expected)}) is expected"
    if isinstance(expected, dict):
        if sorted(expected) != sorted(got):
            missing, extra = sorted(set(expected) - set(got)), sorted(set(got) - set(expected))
            return f"{where} lacks keys {brief(missing)} and has extra keys {brief(extra)}"
        return _first(_difference(expected[key], got[key], tolerance, f"{where}[{key!r}]") for key in expected)
    if isinstance(expected, list):
        if len(expected) != len(got):
            return f"{where} has {len(got)} items where {len(expected)} are expected"
        return _first(
            _difference(a, b, tolerance, f"{where}[{at}]") for at, (a, b) in enumerate(zip(expected, got, strict=True))
        )
    if isinstance(expected, float):
        close = (
            expected == got
            or (math.isnan(expected) and math.isnan(got))
            or (math.isfinite(expected) and abs(expected - got) <= tolerance * abs(expected))
        )
        return "" if close else f"{where} is {got!r} where {expected!r} is expected (tolerance {tolerance:g})"
    return "" if expected == got else f"{where} is {brief(got)} where {brief(expected)} is expected"


def _array_difference(expected: Any, got: Any, tolerance: float, where: str) -> str:
    if not (isinstance(expected, np.ndarray) and isinstance(got, np.ndarray)):
        return f"{where} is {brief(got)} where {brief(expected)} is expected"
    if expected.dtype != got.dtype or expected.shape != got.shape:
        return f"{where} is {brief(got)} where {brief(expected)} is expected"
    if expected.dtype.kind not in "fc":
        bad = expected != got
    else:
        with np.errstate(all="ignore"):
            finite = np.abs(
                expected[np.isfinite(expected)].astype(np.complex128 if expected.dtype.kind == "c" else np.float64)
            )
            scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
            close = np.isfinite(expected) & (np.abs(got - expected) <= tolerance * np.maximum(np.abs(expected), scale))
            bad = ~(close | (got == expected) | (np.isnan(got) & np.isnan(expected)))
    if not bad.any():
        return ""
    flat = int(np.argmax(bad.reshape(-1)))
    index = tuple(int(i) for i in np.unravel_index(flat, bad.shape)) if bad.ndim else ()
    wrong, right = got.reshape(-1)[flat].item(), expected.reshape(-1)[flat].item()
    return (
        f"{where}{list(index) if index else ''} is {wrong!r} where {right!r} is expected"
        f" ({int(bad.sum())} of {bad.size} elements differ, tolerance {tolerance:g})"
    )


def nonfinite(value: Any, where: str = "answer") -> str:
    """Where a value holds a NaN or an infinity, or ""."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{where} is {value!r}"
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fc" or bool(np.isfinite(value).all()):
            return ""
        return f"{where} holds {int((~np.isfinite(value)).sum())} numbers that are not finite"
    if isinstance(value, dict):
        return _first(nonfinite(item, f"{where}[{key!r}]") for key, item in value.items())
    if isinstance(value, list):
        return _first(nonfinite(item, f"{where}[{at}]") for at, item in enumerate(value))
    return ""


def brief(value: Any, width: int = 80) -> str:
    """A value in short, for a reason that somebody reads; never fails and never takes long, whatever the value."""
    text = _brief(value, width)
    return text if len(text) <= width else text[: width - 3] + "..."


def _brief(value: Any, width: int) -> str:
    if isinstance(value, np.ndarray):
        shape = "x".join(map(str, value.shape)) or "scalar"
        return f"array {value.dtype} {shape} {brief(value.reshape(-1)[:6].tolist(), width // 2)}"
    if isinstance(value, dict):
        items = itertools.islice(value.items(), width // 4)
        return "{" + ", ".join(f"{_brief(key, width // 2)}: {brief(item, width // 2)}" for key, item in items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(brief(item, width // 2) for item in value[: width // 2]) + "]"
    if type(value) is int and value.bit_length() > 256:
        return f"an int of {value.bit_length()} bits"  # Python refuses to write out really long ones
    return repr(value[: width + 1] if isinstance(value, (bytes, str)) else value)


def _kind(value: Any) -> str:
    return type(value).__name__


def _first(reasons: Any) -> str:
    return next((reason for reason in reasons if reason), "")
