"""The pair: reference and candidate, each in its own fresh worker, asked the same questions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from outpace.errors import TaskError
from outpace.judge.feeder import ANSWER_LIMIT, DESK_BYTES, Lot
from outpace.judge.jail import JAIL_UID, MIB, JailKind
from outpace.judge.worker import Failed, Heard, Memory, Program, Region, Worker

INPUT_REGION = 256 * MIB


class SideFailed(Exception):
    """A worker failed; `side` tells whose it was."""

    def __init__(self, failure: Failed, side: int) -> None:
        super().__init__(failure.reason)
        self.failure, self.side = failure, side


class Pair:
    """Reference (side 0) and candidate (side 1), each in its own fresh worker, with memory that is not the other's."""

    def __init__(
        self,
        kind: JailKind,
        programs: Mapping[int, Program],
        cores: Sequence[int],
        output_bytes: int,
        memory: Memory = Memory(),
    ) -> None:
        """Start the sides that are named, in that order."""
        # No page serves both. Whoever maps a page can throw it out of the caches, and see by the time of a look whether
        # the other has been there: in a set-up that both read, that told where the reference had found its answer.
        self._inputs = {side: Region(INPUT_REGION, writable_inside=False) for side in programs}
        self._outputs = {side: Region(DESK_BYTES + output_bytes, writable_inside=True) for side in programs}
        self.workers: dict[int, Worker] = {}
        try:
            for side, program in programs.items():
                own = dataclasses.replace(program.confinement, uid=JAIL_UID + side)
                try:
                    self.workers[side] = Worker.start(
                        kind,
                        dataclasses.replace(program, confinement=own),
                        self._inputs[side],
                        self._outputs[side],
                        cores,
                        memory,
                    )
                except Failed as failure:
                    raise SideFailed(failure, side) from failure
        except BaseException:
            self.close()
            raise

    def ask(self, side: int, lot: Lot, seconds: float = math.inf, room: int = ANSWER_LIMIT) -> Heard:
        """One side's turn, whose answers have so much room.

        It may take so long at most, and each of its calls as long as the task's limit says.
        """
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
            return worker.ask(lot, min(limit * max(lot.calls, 1), seconds), room)
        except Failed as failure:
            raise SideFailed(failure, side) from failure

    def held(self) -> tuple[int, int]:
        """Bytes of memory on the accounts of both sides' control groups."""
        reference, candidate = (self.workers[side].held() for side in (0, 1))
        return reference, candidate

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        for region in (*self._inputs.values(), *self._outputs.values()):
            region.close()
