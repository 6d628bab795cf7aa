"""Labels: where the name of a dot can stand without lying over another dot, another name or the line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Point = tuple[float, float]

# Of a digit of 12 pixels, and of a dot; a little more than they are, since fonts differ.
_WIDE, _HIGH, _DOT = 8.0, 13.0, 5.5


@dataclass(frozen=True)
class Place:
    """Where a name stands beside its dot: the side it is aligned to, and how far off its middle is."""

    align: Literal["left", "center", "right"]
    dx: int
    dy: int

    def box(self, at: Point, width: float) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of a name that is so wide."""
        left = at[0] + self.dx - {"left": 0.0, "center": width / 2, "right": width}[self.align]
        middle = at[1] + self.dy
        return left, middle - _HIGH / 2, left + width, middle + _HIGH / 2


# The best first: beside a line that climbs, what is above and to the left is free.
PLACES = (
    Place("right", -6, -11),
    Place("center", 0, -14),
    Place("left", 6, -11),
    Place("left", 6, 12),
    Place("center", 0, 15),
    Place("right", -6, 12),
    Place("left", 9, 0),
    Place("right", -9, 0),
)


def places(names: Sequence[str], at: Sequence[Point], others: Sequence[Point], left: float) -> list[Place | None]:
    """A place for each of the dots `at`, which a line joins in this order, or None; nothing stands before `left`."""
    steps = [point for start, end in pairwise(at) for point in _between(start, end)]
    taken: list[tuple[float, float, float, float]] = []
    found: list[Place | None] = [None] * len(names)
    # The last is the one that is looked for.
    for number in reversed(range(len(names))):
        for place in PLACES:
            box = place.box(at[number], _WIDE * len(names[number]))
            if (
                box[0] >= left
                and not any(_near(box, dot, _DOT) for dot in (*at, *others))
                and not any(_near(box, step, 1.0) for step in steps)
                and not any(_overlap(box, other) for other in taken)
            ):
                taken.append(box)
                found[number] = place
                break
    return found


def _between(start: Point, end: Point) -> list[Point]:
    """Points of a line, a few pixels from each other."""
    count = max(int(max(abs(end[0] - start[0]), abs(end[1] - start[1])) / 3), 1)
    return [
        (start[0] + (end[0] - start[0]) * step / count, start[1] + (end[1] - start[1]) * step / count)
        for step in range(count + 1)
    ]


def _near(box: tuple[float, float, float, float], point: Point, room: float) -> bool:
    return box[0] - room < point[0] < box[2] + room and box[1] - room < point[1] < box[3] + room


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
