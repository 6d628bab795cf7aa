"""The pair: reference and candidate, each in its own fresh worker, over the same shared inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outpace.errors import TaskError
from outpace.judge.batch import BadAnswer, Batch
from outpace.judge.jail import MIB, JailKind
from outpace.judge.verdict import Outcome, Sample
from outpace.judge.worker import Failed, Program, Region, Worker

INPUT_REGION = 256 * MIB
# Loading a candidate, setting it up and its first calls may take this many times the reference's CPU seconds, and the
# program's `once_seconds`: work must not move there from the timed calls without bound.
ONCE_FACTOR = 2.0
# A whole batch may take this many times what the reference takes over it, beside one call's own limit.
PATIENCE = 100


class SideFailed(Exception):
    """A worker failed to start; `side` tells whose it was."""

    def __init__(self, failure: Failed, side: int) -> None:
        super().__init__(failure.reason)
        self.failure, self.side = failure, side


class Pair:
    """Reference and candidate, each in its own fresh worker, over the same shared memory."""

    def __init__(
        self,
        kind: JailKind,
        programs: tuple[Program, Program],
        cores: Sequence[int],
        output_bytes: int,
        first: int,
    ) -> None:
        self._inputs = Region(INPUT_REGION, writable_inside=False)
        # Inputs share their pages, which takes a large part of the noise out; answers must not, or the candidate
        # would find the reference's there.
        self._outputs = (
            Region(output_bytes, writable_inside=True),
            Region(output_bytes, writable_inside=True),
        )
        self.workers: dict[int, Worker] = {}
        self.once = [0.0, 0.0]  # CPU seconds each side spent on what it does once per process
        self.side = first
        try:
            for self.side in (first, 1 - first):
                self.workers[self.side] = Worker.start(
                    kind, programs[self.side], self._inputs, self._outputs[self.side], cores
                )
        except Failed as failure:
            self.close()
            raise SideFailed(failure, self.side) from failure
        except BaseException:
            self.close()
            raise

    def setup(self, batch: Batch | None) -> None:
        """Hand both the set-up data, if there is any."""
        self.once = [self.workers[side].loading for side in (0, 1)]
        if batch is not None:
            for self.side in (0, 1):
                self.once[self.side] += self.workers[self.side].setup(batch)
        self.bound_work_done_once()

    def warm(self, side: int, batch: Batch, seconds: tuple[float, float]) -> None:
        """The first calls of a process; what they take beyond twice their usual time is work done once."""
        spent = self.sample(side, batch, seconds[0] * batch.count).cpu / 1e9
        self.once[side] += max(spent - 2 * seconds[side] * batch.count, 0.0)

    def bound_work_done_once(self) -> None:
        """The candidate may not take much longer than the reference over what it does once per process."""
        spent = self.once
        self.side = 1
        allowed = ONCE_FACTOR * spent[0] + self.workers[1].program.once_seconds
        if spent[1] > allowed:
            raise Failed(
                Outcome.REFUSED,
                f"loading, set-up and the first calls took {spent[1]:.3f} s of CPU time beyond the calls themselves, "
                f"the reference's {spent[0]:.3f} s; {allowed:.3f} s are allowed",
            )

    def prepare(self, batches: Sequence[Batch]) -> None:
        """Let both map the memory that these batches will use."""
        for side, worker in self.workers.items():
            self.side = side
            worker.prepare(batches)

    def sample(self, side: int, batch: Batch, expected: float) -> Sample:
        """Time one batch on one side, when the reference is expected to take so many seconds over it.

        One call may take as long as the task's limit says, but a batch of thousands may not take thousands of times
        that.
        """
        self.side = side
        worker = self.workers[side]
        if len(batch.data) > INPUT_REGION or batch.output_bytes > worker.outputs.size:
            raise TaskError(
                f"{batch.count} calls take {len(batch.data) // MIB} MB of inputs and {batch.output_bytes // MIB} MB of "
                f"answers; {INPUT_REGION // MIB} and {worker.outputs.size // MIB} are allowed: make inputs smaller, or "
                "raise [limits] output_mb"
            )
        limit = worker.program.seconds
        limit = min(limit * batch.count, limit + PATIENCE * expected)
        worker.load(batch, limit)
        return worker.go(limit)

    def room_for(self, batch: Batch) -> int:
        """How many such calls fit the regions, with room for some that are twice as large."""
        worker = self.workers[self.side]
        inputs = INPUT_REGION * batch.count // (2 * len(batch.data))
        outputs = worker.outputs.size * batch.count // (2 * max(batch.used(worker.outputs.view), 1))
        return max(min(inputs, outputs), 1)

    def answers(self) -> list[Any]:
        """What the side that ran last answered."""
        try:
            return self.workers[self.side].answers()
        except BadAnswer as error:
            raise Failed(Outcome.WRONG, str(error)) from None

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        for region in (self._inputs, *self._outputs):
            region.close()
