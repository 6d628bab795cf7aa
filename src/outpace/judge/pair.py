"""The pair: reference and candidate, each in its own fresh worker, asked the same questions over the same pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from outpace.errors import TaskError
from outpace.judge.feeder import DESK_BYTES, Lot
from outpace.judge.jail import MIB, JailKind
from outpace.judge.worker import Failed, Heard, Program, Region, Worker

INPUT_REGION = 256 * MIB


class SideFailed(Exception):
    """A worker failed; `side` tells whose it was."""

    def __init__(self, failure: Failed, side: int) -> None:
        super().__init__(failure.reason)
        self.failure, self.side = failure, side


class Pair:
    """Reference (side 0) and candidate (side 1), each in its own fresh worker, over the same shared inputs."""

    def __init__(
        self,
        kind: JailKind,
        programs: Mapping[int, Program],
        cores: Sequence[int],
        output_bytes: int,
        populate: tuple[int, int] = (0, 0),
    ) -> None:
        """Start the sides that are named, in that order."""
        # Inputs share their pages, which takes a large part of the noise out; the feeder wipes them after each turn.
        # Answers must not, or the candidate would find the reference's there.
        self._inputs = Region(INPUT_REGION, writable_inside=False)
        self._outputs = {side: Region(DESK_BYTES + output_bytes, writable_inside=True) for side in programs}
        self.workers: dict[int, Worker] = {}
        try:
            for side, program in programs.items():
                try:
                    self.workers[side] = Worker.start(kind, program, self._inputs, self._outputs[side], cores, populate)
                except Failed as failure:
                    raise SideFailed(failure, side) from failure
        except BaseException:
            self.close()
            raise

    def ask(self, side: int, lot: Lot, seconds: float = math.inf) -> Heard:
        """One side's turn, which may take so long at most, and each of its calls as long as the task's limit says."""
        worker = self.workers[side]
        taken = max(lot.kept, worker.kept) + lot.input_bytes
        if taken > INPUT_REGION:
            raise TaskError(
                f"a question and what was set up take {taken // MIB} MB; {INPUT_REGION // MIB} are allowed: "
                "make inputs smaller"
            )
        largest = max((question.answer_bytes or 0 for question in lot.questions), default=0)
        if largest > self._outputs[side].size - DESK_BYTES:
            raise TaskError(f"one answer takes {largest // MIB} MB; raise [limits] output_mb, or make inputs smaller")
        limit = worker.program.seconds
        try:
            return worker.ask(lot, min(limit * max(lot.calls, 1), seconds))
        except Failed as failure:
            raise SideFailed(failure, side) from failure

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        for region in (self._inputs, *self._outputs.values()):
            region.close()
