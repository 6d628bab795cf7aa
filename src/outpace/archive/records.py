"""Archive records: runs, trials and costs as Python values, and their exact forms in SQLite columns."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal

from outpace.cost import Cost
from outpace.judge.verdict import NONE, Bucket, Life, Outcome, Sample, Span, SpeedUp, Verdict
from outpace.scored import Scored
from outpace.task.candidate import Candidate

State = Literal["asked", "answered", "judged"]

# Below this a zlib stream saves no page, and plain text can be read with any SQLite tool.
PLAIN_BYTES = 1024


@dataclass(frozen=True)
class RunRecord:
    """One search: who proposes, on which task, with which settings, on which kind of machine."""

    id: int
    name: str
    task_hash: str
    task_name: str
    policy: str
    settings: dict[str, Any]
    seed: int
    machine: dict[str, Any]
    machine_key: str
    started_at: float
    policy_state: bytes


@dataclass(frozen=True)
class Asked:
    """A prompt: its text, what it showed and as fast as it then was, and the candidate that edits start from."""

    id: int
    text: str
    shown: tuple[Scored, ...]
    parent: str | None


@dataclass(frozen=True)
class Trial:
    """One reply to a prompt and what came of it; trials of one prompt are a group."""

    id: int
    run: int
    number: int
    state: State
    asked: Asked
    # The hash of the candidate that the reply started from; before it is judged, the prompt's.
    parent: str | None
    reply: str | None
    analysis: str
    design: str
    candidate: str | None
    verdict: Verdict | None
    confirmation: Verdict | None
    # The trial whose verdict this one was given, because its sources were equal.
    duplicate_of: int | None
    cost: Cost
    asked_at: float
    judged_at: float | None


def canonical_json(value: object) -> str:
    """Equal values give equal text; a tuple and a list are the same."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def pack_text(text: str) -> str | bytes:
    """Short text as it is, long text compressed; SQLite keeps the two apart by their type."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        # Compilers and crashing programs print bytes that are no text; SQLite takes no lone surrogate.
        return zlib.compress(text.encode("utf-8", "surrogatepass"))
    return text if len(raw) <= PLAIN_BYTES else zlib.compress(raw)


def unpack_text(stored: str | bytes) -> str:
    """The text that was packed."""
    if isinstance(stored, str):
        return stored
    return zlib.decompress(stored).decode("utf-8", "surrogatepass")


def pack_candidate(candidate: Candidate) -> tuple[str | bytes, str]:
    """The columns `files, flags`."""
    return pack_text(canonical_json(dict(candidate.files))), canonical_json(candidate.flags)


def unpack_candidate(row: Sequence[Any]) -> Candidate:
    """The candidate of a row `files, flags`."""
    return Candidate(json.loads(unpack_text(row[0])), tuple(json.loads(row[1])))


def pack_shown(shown: Iterable[Scored]) -> str:
    """The column `shown` of a prompt."""
    return canonical_json([astuple(each) for each in shown])


def unpack_shown(stored: str) -> tuple[Scored, ...]:
    """The candidates of a column `shown`; archives of earlier versions have hashes alone, which say too little."""
    return tuple(Scored(*each) for each in json.loads(stored) if isinstance(each, list))


def pack_samples(buckets: Iterable[Bucket]) -> bytes:
    """Buckets as JSON, not yet compressed: JSON integers have no limit, so 64-bit seeds are safe."""
    rows = [
        [b.seed, _flat(b.reference), _flat(b.candidate), _numbers(b.again), b.converting, b.span, b.block]
        + ([_numbers(b.reference.late), _numbers(b.candidate.late)] if b.span is Span.LONG else [])
        for b in buckets
    ]
    return canonical_json(rows).encode()


def unpack_samples(compressed: bytes) -> tuple[Bucket, ...]:
    """The buckets of a compressed `pack_samples`."""
    return tuple(_bucket(*row) for row in json.loads(zlib.decompress(compressed)))


def _bucket(
    seed: int,
    reference: list[int],
    candidate: list[int],
    again: list[int],
    converting: int,
    # Archives of earlier versions have no span; all of their buckets are looks. Later ones have no block.
    span: str = Span.BRIEF,
    *more: Any,
) -> Bucket:
    block, halves = (more[0], more[1:]) if more and isinstance(more[0], int) else (1, more)
    halves = halves or ((), ())
    both = _life(reference, halves[0]), _life(candidate, halves[1])
    return Bucket(*both, seed, Sample(*again), converting, Span(span), block)


def _flat(life: Life) -> list[int]:
    samples = (life.start, life.opening, *life.turns, *life.asides)
    return [len(life.turns), *(number for sample in samples for number in _numbers(sample))]


def _numbers(sample: Sample) -> tuple[int, ...]:
    return sample.calls, sample.wall, sample.cpu, sample.delay


def _life(flat: list[int], late: Sequence[int]) -> Life:
    count, *rest = flat
    numbers = iter(rest)
    start, opening, *others = (Sample(*four) for four in zip(numbers, numbers, numbers, numbers, strict=True))
    return Life(opening, tuple(others[:count]), tuple(others[count:]), start, Sample(*late) if late else NONE)


def pack_verdict(verdict: Verdict) -> tuple[Any, ...]:
    """The columns `outcome, reason, ratio, low, high, win, buckets, seconds, machine`."""
    return (
        verdict.outcome.value,
        pack_text(verdict.reason),
        *_pack_speed_up(verdict.speed_up),
        float(verdict.seconds),
        verdict.machine,
    )


def _pack_speed_up(speed_up: SpeedUp | None) -> tuple[Any, ...]:
    if speed_up is None:
        return (None,) * 5
    # NumPy's numbers are no SQLite numbers; the statistics may well hand some over.
    numbers = float(speed_up.ratio), float(speed_up.low), float(speed_up.high)
    return *numbers, bool(speed_up.win), int(speed_up.buckets)


def unpack_verdict(row: Sequence[Any]) -> Verdict | None:
    """The verdict of a row of `pack_verdict`'s columns and the samples, or None for a row of NULLs."""
    outcome, reason, ratio, low, high, win, count, seconds, machine, samples = row
    if outcome is None:
        return None
    speed_up = None
    if count is not None:
        speed_up = SpeedUp(_real(ratio), _real(low), _real(high), bool(win), count)
    buckets = unpack_samples(samples) if samples is not None else ()
    return Verdict(Outcome(outcome), unpack_text(reason), speed_up, buckets, _real(seconds), machine)


def _real(stored: float | None) -> float:
    # SQLite has no NaN: it stores NULL instead.
    return float("nan") if stored is None else float(stored)


RUN_COLUMNS = (
    "runs.id, runs.name, runs.task, tasks.name, policy, settings, seed, machine, machine_key, started_at, policy_state"
)


def unpack_run(row: Sequence[Any]) -> RunRecord:
    """The run of a row of RUN_COLUMNS."""
    run, name, task, task_name, policy, settings, seed, machine, key, started_at, state = row
    return RunRecord(
        run,
        name,
        task,
        task_name,
        policy,
        json.loads(settings),
        int(seed),
        json.loads(machine),
        key,
        started_at,
        state,
    )


COST_COLUMNS = (
    "tokens_in",
    "tokens_out",
    "money",
    "seconds",
    "calls",
    "failed_calls",
    "estimated_calls",
)

_VERDICT = (
    "{0}.outcome, {0}.reason, {0}.ratio, {0}.low, {0}.high, {0}.win, {0}.buckets, {0}.seconds, {0}.machine, {0}s.data"
)
VERDICT_COLUMNS = _VERDICT.format("v")
TRIAL_SELECT = f"""
    SELECT t.id, t.run, t.number, t.state, t.parent, t.candidate, t.duplicate_of, t.asked_at, t.judged_at,
        p.id, p.text, p.shown, p.parent, x.reply, x.analysis, x.design,
        {", ".join(f"t.{name}" for name in COST_COLUMNS)}, {VERDICT_COLUMNS}, {_VERDICT.format("c")}
    FROM trials t JOIN prompts p ON p.id = t.prompt JOIN texts x ON x.trial = t.id
    LEFT JOIN verdicts v ON v.id = t.verdict LEFT JOIN samples vs ON vs.digest = v.samples
    LEFT JOIN verdicts c ON c.id = t.confirmation LEFT JOIN samples cs ON cs.digest = c.samples
"""


def unpack_trial(row: Sequence[Any]) -> Trial:
    """The trial of a row of TRIAL_SELECT."""
    trial, run, number, state, parent, candidate, duplicate_of, asked_at, judged_at = row[:9]
    prompt, text, shown, started, reply, analysis, design = row[9:16]
    costs, verdicts = 16 + len(COST_COLUMNS), VERDICT_COLUMNS.count(",") + 1
    return Trial(
        id=trial,
        run=run,
        number=number,
        state=state,
        asked=Asked(prompt, unpack_text(text), unpack_shown(shown), started),
        parent=parent,
        reply=None if reply is None else unpack_text(reply),
        analysis=unpack_text(analysis),
        design=unpack_text(design),
        candidate=candidate,
        verdict=unpack_verdict(row[costs : costs + verdicts]),
        confirmation=unpack_verdict(row[costs + verdicts :]),
        duplicate_of=duplicate_of,
        cost=Cost(*row[16:costs]),
        asked_at=asked_at,
        judged_at=judged_at,
    )
