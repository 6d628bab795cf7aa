"""Soundness: what a judge would not notice, found by changing inputs a little and asking the reference again.

A check that compares whole answers is worth only as much as the answers depend on the inputs: where nine elements of
65,536 decide the answer, a candidate that reads nine is a winner.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.domains.base import Input
from outpace.task import Output

# Of the elements tried, so many must matter.
LEAST = 0.1
# Elements of each argument that are changed, over all inputs.
TRIED = 40
# Different changes of one element, before it counts as one that does not matter.
ROUNDS = 4
# Stands for an answer that never came: the reference failed on an input that was changed.
FAILED = object()

Ask = Callable[[Sequence[Input]], list[Any]]
# Why the judge takes the second answer for wrong where the first is expected, or "".
Differs = Callable[[Input, Any, Any], str]
Path = tuple[Any, ...]


@dataclass
class _Trial:
    """One element of one argument of one input, until a change of it matters."""

    name: str
    number: int
    path: Path
    matters: bool = False


def idle_parts(
    answered: Sequence[tuple[Input, Any]], ask: Ask, differs: Differs, rng: np.random.Generator
) -> list[str]:
    """A sentence for each argument of which most elements do not matter to the answer."""
    each_of = max(TRIED // len(answered), 1)
    trials = [
        _Trial(name, number, path)
        for number, (given, _) in enumerate(answered)
        for name, value in given.items()
        for path in _paths(value, each_of, rng)
    ]
    for round_number in range(ROUNDS):
        open_trials = [(each, _changed(answered, each, round_number, rng)) for each in trials if not each.matters]
        asked = [(each, changed) for each, changed in open_trials if changed is not None]
        for (each, changed), answer in zip(asked, ask([changed for _, changed in asked]), strict=True):
            given, expected = answered[each.number]
            # A reference that fails on the changed input has looked at it.
            each.matters = answer is FAILED or _seen(each, given, changed, expected, answer, differs)
    found = []
    for name in dict.fromkeys(each.name for each in trials):
        own = [each.matters for each in trials if each.name == name]
        share = sum(own) / len(own)
        if share < LEAST:
            how_many = f"only {sum(own)}" if sum(own) else "none"
            found.append(
                f"{how_many} of {len(own)} elements of '{name}' that were changed made a difference to the answer, so "
                f"that a candidate may skip most of it; let make_input make inputs on which all of '{name}' is used"
            )
    return found


def idle_numbers(
    drawn: Sequence[Input], answered: Sequence[tuple[Input, Any]], ask: Ask, differs: Differs
) -> list[str]:
    """A sentence for each number that is always the same, or that the answer does not depend on."""
    found = []
    for name in drawn[0]:
        values = [given[name] for given in drawn]
        if not all(_is_number(value) for value in values):
            continue
        if len(set(values)) == 1:
            found.append(
                f"'{name}' is always {values[0]!r}, so that a candidate that ignores it would pass; "
                "draw it in make_input"
            )
            continue
        swaps = []
        for number, (given, _) in enumerate(answered):
            # A smaller one, where it counts something: a larger one may lead past the end of an array.
            other = min(
                (
                    value
                    for value in values
                    if value < given[name] or (value != given[name] and isinstance(value, float))
                ),
                default=None,
            )
            if other is not None and not _is_length(name, given):
                swaps.append((number, {**given, name: other}))
        answers = ask([changed for _, changed in swaps])
        if swaps and not any(
            answer is FAILED or differs(changed, answer, answered[number][1])
            for (number, changed), answer in zip(swaps, answers, strict=True)
        ):
            found.append(
                f"another '{name}' does not change the answer, so that a candidate that ignores it would pass; "
                "let make_input make inputs on which it matters, or take it out of the function"
            )
    return found


def swallowed(
    answers: Sequence[Any], tolerance: float, poison: int, passes: Callable[[int, Any], bool] | None = None
) -> list[str]:
    """A sentence where the tolerance would let zeros pass for a good part of an answer's numbers.

    `passes` says whether the judge takes this for the answer of that number: most small numbers stand for themselves.
    """
    found = []
    for name in dict.fromkeys(name for answer in answers if isinstance(answer, Mapping) for name in answer):
        arrays = [answer.get(name) for answer in answers if isinstance(answer, Mapping)]
        numbers = [
            # What nobody has written to is checked by its bytes alone.
            each[each != np.frombuffer(bytes([poison]) * each.itemsize, each.dtype)[0]]
            for each in arrays
            if isinstance(each, np.ndarray) and each.dtype.kind == "f"
        ]
        numbers = [each for each in numbers if each.size]
        if not numbers:
            continue
        lost = sum(int(np.count_nonzero(_swallowed(each, tolerance))) for each in numbers)
        total = sum(each.size for each in numbers)
        if lost > LEAST * total and (passes is None or _zeros_pass(answers, name, tolerance, passes)):
            found.append(
                f"{lost} of {total} numbers in '{name}' are so small beside the others that zeros would "
                f"pass for them (tolerance {tolerance:g}); make inputs with answers of one order of magnitude, "
                "or write a check"
            )
    return found


def truncated(answers: Sequence[Any], roomier: Sequence[Any], poison: int) -> str:
    """The name of an output that holds more, or "return" where that differs, once there is more room; else ""."""
    for short, long in zip(answers, roomier, strict=True):
        if not isinstance(short, Mapping) or not isinstance(long, Mapping):
            return "answer"
        for name, value in short.items():
            other = long[name]
            if not isinstance(value, np.ndarray):
                if value != other and not (value != value and other != other):
                    return str(name)
                continue
            a, b = value.tobytes(), other.tobytes()
            # What was not written to is poison; in the longer one there must be nothing behind the end.
            if a != b[: len(a)] or b[len(a) :].strip(bytes([poison])):
                return str(name)
    return ""


# Changing inputs


def _paths(value: Any, count: int, rng: np.random.Generator) -> list[Path]:
    """Places of elements, spread over the whole value; none for what has no elements."""
    size = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, _SEQUENCES) else 0
    if not size:
        return []
    bounds = np.linspace(0, size, min(count, size) + 1)
    places = [int(rng.integers(int(low), max(int(high), int(low) + 1))) for low, high in itertools.pairwise(bounds)]
    if isinstance(value, np.ndarray | str | bytes):
        return [(place,) for place in places]
    keys = list(value) if isinstance(value, dict) else range(size)
    found = []
    for place in places:
        inner = value[keys[place]]
        deeper = _paths(inner, 1, rng) if isinstance(inner, list | tuple | dict) else []
        found.append((keys[place], *(deeper[0] if deeper else ())))
    return found


_SEQUENCES = (list, tuple, dict, str, bytes)


def _changed(
    answered: Sequence[tuple[Input, Any]], trial: _Trial, round_number: int, rng: np.random.Generator
) -> Input | None:
    """The input with that element changed, or None where this round has no change to offer."""
    given = answered[trial.number][0]
    value = given[trial.name]
    scalars = [each for name, each in given.items() if name != trial.name and _is_number(each)]
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1)
        new = _other_number(flat, trial.path[0], round_number, scalars, rng)
        if new is None:
            return None
        copy = flat.copy()
        copy[trial.path[0]] = new
        return {**given, trial.name: copy.reshape(value.shape)}
    if isinstance(value, str | bytes):
        raw = list(map(ord, value) if isinstance(value, str) else value)
        letter = _other_letter(raw, trial.path[0], round_number, scalars, rng)
        if letter is None or letter == raw[trial.path[0]]:
            return None
        raw[trial.path[0]] = letter
        return {**given, trial.name: "".join(map(chr, raw)) if isinstance(value, str) else bytes(raw)}
    leaf = _at(value, trial.path)
    other = _other_leaf(value, trial.path, leaf, round_number, scalars, rng)
    return None if other is None or other == leaf else {**given, trial.name: _with(value, trial.path, other)}


def _other_number(
    flat: np.ndarray[Any, Any], at: int, round_number: int, scalars: Sequence[Any], rng: np.random.Generator
) -> Any:
    old = flat[at]
    low, high = flat.min(), flat.max()
    if flat.dtype.kind == "b":
        return None if round_number else not old
    if flat.dtype.kind not in "iuf":
        return None
    options: list[Any] = []
    if round_number == 0:
        options = [flat[int(rng.integers(flat.size))] for _ in range(8)]
    elif flat.dtype.kind == "f":
        spread = float(high) - float(low) + 1.0
        options = [float(old) + (spread if round_number == 1 else -spread)] if round_number < 3 else list(scalars)
    elif round_number == 1:
        # Not beyond what the array holds: its elements may be places in another one.
        options = [old + 1 if old < high else old, old - 1 if old > low else old]
    elif round_number == 2:
        # Numbers far beyond any place in the array are no places.
        far = int(high) > 64 * flat.size + 4096 and int(high) < int(np.iinfo(flat.dtype).max)
        options = [high + 1 if far else high, low]
    else:
        options = [each for each in scalars if low <= each <= high]
    return next((each for each in options if each != old), None)


def _other_letter(
    raw: Sequence[int], at: int, round_number: int, scalars: Sequence[Any], rng: np.random.Generator
) -> int | None:
    old = raw[at]
    if round_number == 0:
        return next((letter for letter in (raw[int(rng.integers(len(raw)))] for _ in range(8)) if letter != old), None)
    if round_number == 1:
        return old ^ 0x20 if chr(old).isalpha() else ord("a")
    if round_number == 2:
        return ord(" ") if old != ord(" ") else ord("1")
    return next((int(each) for each in scalars if isinstance(each, int) and 32 <= each < 127), None)


def _other_leaf(
    value: Any, path: Path, leaf: Any, round_number: int, scalars: Sequence[Any], rng: np.random.Generator
) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    if round_number == 0:
        peers = [_at(value, other) for other in _paths(value, 8, rng) if len(other) == len(path)]
        return next((each for each in peers if type(each) is type(leaf) and each != leaf), None)
    if isinstance(leaf, int | float):
        if round_number == 3:
            return next((type(leaf)(each) for each in scalars), None)
        step = 1 if isinstance(leaf, int) else 1000.0
        return leaf + step if round_number == 1 else leaf - step
    if isinstance(leaf, str):
        return {1: leaf + "x", 2: leaf[:-1], 3: leaf[::-1]}[round_number]
    return None


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(value: Any, path: Path, leaf: Any) -> Any:
    """The value with another leaf; what is not on the way to it is shared."""
    if not path:
        return leaf
    if isinstance(value, dict):
        return {**value, path[0]: _with(value[path[0]], path[1:], leaf)}
    items = list(value)
    items[path[0]] = _with(items[path[0]], path[1:], leaf)
    return type(value)(items) if isinstance(value, tuple) else items


def _seen(trial: _Trial, given: Input, changed: Input, expected: Any, answer: Any, differs: Differs) -> bool:
    """Whether a candidate that skips the element would be noticed: something else changed, or it was written over."""
    if not (isinstance(answer, Mapping) and isinstance(expected, Mapping) and trial.name in answer):
        return bool(differs(changed, answer, expected))
    before, after = expected[trial.name], answer[trial.name]
    if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray) and before.shape == after.shape):
        return bool(differs(changed, answer, expected))
    place = trial.path[0]
    old, new = _elements(given[trial.name])[place], _elements(changed[trial.name])[place]
    if after.reshape(-1)[place] != new or before.reshape(-1)[place] != old:
        return True
    # It came back as it was given, which alone tells of no work.
    same = after.reshape(-1).copy()
    same[place] = before.reshape(-1)[place]
    return bool(differs(changed, {**answer, trial.name: same.reshape(after.shape)}, expected))


def _elements(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.ndarray):
        return value.reshape(-1)
    return np.array(list(map(ord, value))) if isinstance(value, str) else np.frombuffer(value, np.uint8)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number)


def _is_length(name: str, given: Input) -> bool:
    """Whether a number may be how long an array is, or a side of it: with another one it would run past the end."""
    value = given[name]
    if isinstance(value, bool | float) or value == 0:
        return False
    sizes = [
        int(np.prod(each.shape))
        if isinstance(each, Output)
        else each.size
        if isinstance(each, np.ndarray)
        else len(each)
        for each in given.values()
        if isinstance(each, (Output, np.ndarray, *_SEQUENCES))
    ]
    others = [each for key, each in given.items() if key != name and _is_number(each) and not isinstance(each, float)]
    near = {value * each for each in (1, *others)}
    # One more or less: borders, terminators, places between elements.
    return any(abs(size - each) <= 1 for size in sizes for each in near)


def _zeros_pass(answers: Sequence[Any], name: str, tolerance: float, passes: Callable[[int, Any], bool]) -> bool:
    """Whether the judge lets zeros pass for a tenth of the small numbers of most answers that have any."""
    taken = []
    for number, answer in enumerate(answers):
        value = answer.get(name) if isinstance(answer, Mapping) else None
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and (small := _swallowed(value, tolerance)).any():
            zeroed = value.copy()
            zeroed[tuple(place[::10] for place in np.nonzero(small))] = 0
            taken.append(passes(number, {**answer, name: zeroed}))
    return sum(taken) > len(taken) / 2


def _swallowed(numbers: np.ndarray[Any, Any], tolerance: float) -> np.ndarray[Any, Any]:
    # Squares of large numbers are no numbers any more.
    top = float(np.abs(numbers).max(initial=0.0)) or 1.0
    scale = top * float(np.sqrt(np.mean(np.square(numbers.astype(np.float64) / top))))
    result: np.ndarray[Any, Any] = (np.abs(numbers) <= tolerance * scale) & (numbers != 0)
    return result
