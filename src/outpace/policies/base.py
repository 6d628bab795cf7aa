"""The contract of a policy: a prompt in, a reply out, and a lesson where it can learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from outpace.cost import Cost
from outpace.errors import PolicyError
from outpace.scored import Scored
from outpace.task import Task
from outpace.task.candidate import Candidate


@dataclass(frozen=True)
class Shown:
    """A scored candidate as the prompt shows it."""

    candidate: Candidate
    score: Scored


@dataclass(frozen=True)
class Prompt:
    """One question to a policy: the text that a model reads, and the same as values for a policy that is no model."""

    text: str
    task: Task
    # The number of the trial that the reply is for; several trials may ask the same.
    trial: int
    seed: int
    # What edits start from that name no other: the best candidate shown, or the reference.
    parent: Candidate
    shown: tuple[Shown, ...]
    # What is left of each limit of the run; a policy that spends makes no call that could go beyond.
    remaining: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What a policy answered, and what that cost."""

    text: str
    cost: Cost = Cost()


@dataclass(frozen=True)
class Lesson:
    """What came of one reply."""

    trial: int
    # What the reply started from.
    parent: Candidate
    # None where nothing could be read from the reply.
    candidate: Candidate | None
    # None where the verdict tells nothing.
    reward: float | None
    # How it compares with the other replies to the same prompt; None where its reward is.
    advantage: float | None


_NOTHING = Cost()


class NoReply(PolicyError):
    """Calls were made and no reply came of them; what they cost is counted all the same."""

    def __init__(self, message: str, cost: Cost = _NOTHING) -> None:
        super().__init__(message)
        self.cost = cost


class Exhausted(NoReply):
    """The policy has nothing left to propose, or nothing left to pay for it with; the run ends well."""


class Policy(Protocol):
    """Proposes candidates; knows nothing of judging or of the archive."""

    name: str

    def propose(self, prompt: Prompt) -> Reply:
        """The reply to one prompt; raises PolicyError when there is none to be had."""
        ...

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Take into account what came of all replies to one prompt; a policy that cannot learn does nothing."""
        ...

    def save(self) -> bytes:
        """What must be remembered so that a run can be gone on with after a kill."""
        ...

    def restore(self, state: bytes) -> None:
        """Go on from what `save` returned."""
        ...
