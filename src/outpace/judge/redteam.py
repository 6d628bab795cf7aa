"""The red team: attacks on a task before any trial, because a check that lets nothing-doers pass would crown them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from outpace.domains.base import Domain, Input
from outpace.judge.accounts import Account
from outpace.judge.blank import POISON
from outpace.judge.compare import brief, difference, nonfinite
from outpace.judge.inputs import checked
from outpace.judge.spots import excused_by
from outpace.judge.verdict import SpeedUp

# The reference against itself: outside these, something other than speed is being measured.
FAIR_LOW, FAIR_HIGH = 0.97, 1.03
# The largest share of a call that converting its arguments and its answer may take.
CONVERTING_MOST = 0.5


# The reference's answers to variants of an input, as `nudge.variants` makes them.
Mover = Callable[[Input], Sequence[Any]]


def weaknesses(domain: Domain, answered: Sequence[tuple[Input, Any]], moved: Mover | None = None) -> list[str]:
    """Why this task must not be run: each a sentence, from the reference's own answers to several inputs.

    With `moved` also a reference is found whose numbers a rounding step changes so much that anything passes for them.
    """
    moved = None if moved is None else _once(moved)
    found = []
    for given, answer in answered:
        if not domain.task.checking.allow_nonfinite and nonfinite(answer):
            found.append(f"the reference's own {nonfinite(answer)}; set [checking] allow_nonfinite if that is meant")
            break
        reason = checked(domain, given, answer, answer)
        if reason:
            found.append(f"the check rejects the reference's own answer: {reason}")
            break
    first = answered[0][1]
    if all(not difference(first, answer) for _, answer in answered[1:]):
        found.append(f"the reference answers {brief(first)} to every input: its output does not depend on its input")
    if _passes(domain, answered, [first] * len(answered), moved):
        found.append("a program that always gives the same answer passes the check")
    nothings = {
        "empty": [null_like(answer) for _, answer in answered],
        "None for an": [None for _ in answered],
        "unchanged": [untouched(given, answer) for given, answer in answered],
    }
    for name, answers in nothings.items():
        if _passes(domain, answered, answers, moved):
            found.append(f"a program that does nothing ({name} answer) passes the check")
            break
    bare = [without_elements(answer) for _, answer in answered]
    if _changed(answered, bare) and _passes(domain, answered, bare, moved):
        found.append("a program whose arrays have no elements passes the check; compare shapes before elements")
    halves = [without_smaller_half(answer) for _, answer in answered]
    if _changed(answered, halves) and _passes(domain, answered, halves, moved):
        found.append(
            "a program that gives 0 for the smaller half of its numbers passes the check; "
            "compare each number relative to itself, or make [checking] floor smaller"
        )
    for name in ("real", "imaginary"):
        parts = [without_part(answer, name) for _, answer in answered]
        if _changed(answered, parts) and _passes(domain, answered, parts, moved):
            found.append(f"a program that gives 0 for all {name} parts passes the check; compare each part for itself")
    if domain.task.checking.agreement:
        doubled = [with_one_doubled(answer) for _, answer in answered]
        if _changed(answered, doubled) and _passes(domain, answered, doubled, moved):
            found.append(
                f"a program that doubles one of its numbers passes the check within {domain.task.checking.agreement}; "
                "make [checking] tolerance or floor smaller, or the reference less sensitive to rounding"
            )
    return found


def unfair(speed_up: SpeedUp) -> str:
    """Why the reference does not score 1.00 against itself, or ""."""
    if speed_up.win or speed_up.low > FAIR_HIGH or speed_up.high < FAIR_LOW:
        return (
            f"the unchanged reference scores {speed_up.ratio:.3f} ({speed_up.low:.3f} to {speed_up.high:.3f}) "
            "against itself; its speed depends on something other than its code (state between calls, time, chance)"
        )
    return ""


def mostly_conversion(account: Account) -> str:
    """Why so much of a call is the conversion of its arguments and its answer that gains of it say nothing, or ""."""
    if account.converting <= CONVERTING_MOST * account.reference:
        return ""
    return (
        f"converting arguments and answers takes {account.converting / 1e3:.3g} us of the "
        f"{account.reference / 1e3:.3g} us of a call, so that a candidate could win by reading and writing them in "
        "another way; take and return arrays, or let a call do more with them"
    )


def null_like(answer: Any) -> Any:
    """An answer of the same form that holds nothing."""
    if isinstance(answer, np.ndarray):
        return np.zeros_like(answer)
    if isinstance(answer, dict):
        return {key: null_like(value) for key, value in answer.items()}
    return None if answer is None else type(answer)()


def without_elements(answer: Any) -> Any:
    """The answer with arrays of no elements, which NumPy compares with arrays of any length."""
    if isinstance(answer, np.ndarray):
        return np.zeros((0, 1), answer.dtype)
    return {key: without_elements(value) for key, value in answer.items()} if isinstance(answer, dict) else answer


def untouched(given: Input, answer: Any) -> Any:
    """What a C function leaves behind that returns at once: arrays to be changed in place are as they came."""
    if not isinstance(answer, dict):
        return null_like(answer)
    return {
        name: given[name] if isinstance(given.get(name), np.ndarray) else null_like(value)
        for name, value in answer.items()
    }


def without_smaller_half(answer: Any) -> Any:
    """The answer with 0 for the smaller half, by magnitude, of the numbers of each array, list and dict."""
    return _altered(answer, _zero_smaller_half)


def without_part(answer: Any, name: str) -> Any:
    """The answer with 0 for this part, real or imaginary, of all complex numbers."""
    if isinstance(answer, dict):
        return {key: without_part(value, name) for key, value in answer.items()}
    if isinstance(answer, list):
        return [without_part(item, name) for item in answer]
    is_array = isinstance(answer, np.ndarray) and answer.dtype.kind == "c"
    if not (is_array or isinstance(answer, complex)):
        return answer
    kept = answer.real if name == "imaginary" else 1j * answer.imag
    return kept.astype(answer.dtype) if is_array else complex(kept)


def with_one_doubled(answer: Any) -> Any:
    """The answer with one number of middling size doubled in each array, list and dict, and each that stands alone."""
    return _altered(answer, _double_one)


def _altered(answer: Any, alter: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Any:
    if isinstance(answer, np.ndarray):
        return alter(answer) if answer.dtype.kind in "iufc" else answer
    if isinstance(answer, dict):
        return dict(zip(answer, _altered(list(answer.values()), alter), strict=True))
    if isinstance(answer, list):
        # Objects, because the list's ints may be longer than any array type holds.
        numbers = np.array([item for item in answer if type(item) in (int, float)], object)
        new = iter(alter(numbers).tolist())
        return [type(item)(next(new)) if type(item) in (int, float) else _altered(item, alter) for item in answer]
    return alter(np.array([answer], object))[0] if type(answer) in (int, float) else answer


def _zero_smaller_half(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    ranked = _ranked(values)
    altered = values.copy()
    altered.reshape(-1)[ranked[: len(ranked) // 2]] = 0
    return altered


def _double_one(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    ranked = _ranked(values)
    altered = values.copy()
    middle = ranked[len(ranked) // 2 :][:1]
    with np.errstate(over="ignore"):
        altered.reshape(-1)[middle] += values.reshape(-1)[middle]
    return altered


def _ranked(values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Where the numbers stand that are neither 0 nor room nobody wrote to, the smallest first."""
    flat = values.reshape(-1)
    written = np.asarray(flat != 0, bool) & ~_poisoned(flat)
    if values.dtype.kind in "fc":
        written &= np.isfinite(flat)
    places = np.flatnonzero(written)
    # Magnitudes as objects or doubles: the magnitude of the smallest int64 is no int64.
    size = np.abs(flat[places].astype(values.dtype if values.dtype.kind in "Ofc" else np.float64))
    return places[np.argsort(size, kind="stable")]


def _poisoned(flat: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if flat.dtype.kind == "O" or not flat.size:
        return np.zeros(flat.shape, bool)
    untouched = np.frombuffer(bytes([POISON]) * flat.dtype.itemsize, np.uint8)
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(len(flat), -1)
    return np.asarray((raw == untouched).all(axis=1), bool)


def _changed(answered: Sequence[tuple[Input, Any]], answers: Sequence[Any]) -> bool:
    return any(difference(truth, answer) for (_, truth), answer in zip(answered, answers, strict=True))


def _once(moved: Mover) -> Mover:
    """The same movement for every attack: asking the reference anew for each would take longer than the attacks."""
    known: dict[int, Sequence[Any]] = {}

    def asked(given: Input) -> Sequence[Any]:
        if id(given) not in known:
            known[id(given)] = moved(given)
        return known[id(given)]

    return asked


def _passes(domain: Domain, answered: Sequence[tuple[Input, Any]], answers: Sequence[Any], moved: Mover | None) -> bool:
    return all(
        not checked(domain, given, answer, truth, None if moved is None else excused_by(partial(moved, given)))
        for (given, truth), answer in zip(answered, answers, strict=True)
    )
