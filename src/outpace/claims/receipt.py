"""Receipts: a claimed speed-up as one file that anyone can judge again."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from outpace import __version__
from outpace.errors import ReceiptError, TaskError
from outpace.judge import statistics
from outpace.judge.accounts import reckon
from outpace.judge.baseline import Beside
from outpace.judge.verdict import Bucket, Life, Sample, Span, SpeedUp, Verdict
from outpace.machine import Load, Machine
from outpace.task import Task
from outpace.task.candidate import Candidate, forbidden_change, reference, same_sources
from outpace.task.file import make_task

FORMAT = 5
# A receipt of a long run holds some hundred kilobytes; more than this is not a receipt.
_SIZE_LIMIT = 64 << 20
# More than any judge makes: twice as many buckets as are ever looked at, each up to three times, some of them long.
_MOST_BUCKETS, _MOST_TURNS = 256, 1000


class FlagsShare(StrEnum):
    """How much of a claim compiler flags alone explain."""

    NONE = "none"  # no flags that the task allows are proven to make the unchanged reference faster
    PART = "part"  # the winner is proven faster than the unchanged reference under its best flags
    ALL = "all"  # it is not
    UNKNOWN = "unknown"  # the machine was too noisy to tell


@dataclass(frozen=True)
class Evidence:
    """A speed-up, and the samples it must follow from."""

    speed_up: SpeedUp
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True)
class Receipt:
    """What was claimed, of what, and on which evidence."""

    task: Task
    candidate: Candidate
    speed_up: SpeedUp
    buckets: tuple[Bucket, ...]
    # The task's own flags where none make the reference faster.
    best_flags: tuple[str, ...]
    # The unchanged reference under those flags, and the candidate against that; None where there is nothing to time.
    flags_alone: Evidence | None
    over_best_flags: Evidence | None
    jail: str
    machine: Mapping[str, Any]
    load: Mapping[str, Any]
    version: str

    @property
    def unchanged(self) -> bool:
        """Whether the candidate's sources are the reference's, so that its flags are all it has."""
        return same_sources(self.candidate, reference(self.task))

    @property
    def flags_share(self) -> FlagsShare:
        """What flags alone have to do with the claim; it follows from the rest, so a receipt cannot deny it."""
        if self.unchanged:
            return FlagsShare.ALL
        if set(self.best_flags) == set(self.task.build.flags):
            return FlagsShare.NONE
        if self.over_best_flags is None:
            return FlagsShare.UNKNOWN
        return FlagsShare.PART if self.over_best_flags.speed_up.win else FlagsShare.ALL


def is_reference(task: Task, candidate: Candidate) -> bool:
    """Whether a candidate is the reference itself: then a win was chance, and there is nothing to claim."""
    return set(candidate.flags) == set(task.build.flags) and same_sources(candidate, reference(task))


def make_receipt(
    task: Task,
    candidate: Candidate,
    confirmed: Verdict,
    beside: Beside | None,
    *,
    jail: str,
    machine: Machine,
    load: Load,
) -> Receipt:
    """The receipt of a confirmed win; nothing else is ever published."""
    if confirmed.speed_up is None or not confirmed.speed_up.win:
        raise ReceiptError(f"a verdict of '{confirmed.outcome}' that is no win claims nothing: there is no receipt")
    if is_reference(task, candidate):
        raise ReceiptError("the candidate is the reference itself: its win was chance, and there is no receipt")
    return Receipt(
        task=task,
        candidate=candidate,
        speed_up=confirmed.speed_up,
        buckets=confirmed.buckets,
        best_flags=task.build.flags if beside is None else beside.flags,
        flags_alone=None if beside is None else _evidence(beside.alone),
        over_best_flags=None if beside is None else _evidence(beside.over),
        jail=jail,
        machine=dataclasses.asdict(machine),
        load=dataclasses.asdict(load),
        version=__version__,
    )


def _evidence(verdict: Verdict | None) -> Evidence | None:
    return None if verdict is None or verdict.speed_up is None else Evidence(verdict.speed_up, verdict.buckets)


def packed(receipt: Receipt) -> bytes:
    """The receipt as JSON, sealed with the hash of its content."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "outpace": receipt.version,
        "claim": dataclasses.asdict(receipt.speed_up),
        "buckets": [_bucket_row(bucket) for bucket in receipt.buckets],
        "flags": {
            "share": receipt.flags_share,
            "best": list(receipt.best_flags),
            "alone": _evidence_row(receipt.flags_alone),
            "over": _evidence_row(receipt.over_best_flags),
        },
        "jail": receipt.jail,
        "machine": dict(receipt.machine),
        "load": dict(receipt.load),
        "task": {
            "hash": receipt.task.hash,
            "files": {name: _packed_file(content) for name, content in receipt.task.files.items()},
        },
        "candidate": {
            "hash": receipt.candidate.hash,
            "files": dict(receipt.candidate.files),
            "flags": list(receipt.candidate.flags),
        },
    }
    return json.dumps({**body, "sha256": _seal(body)}, indent=1, sort_keys=True).encode() + b"\n"


def write_receipt(content: bytes, path: Path) -> None:
    """Put a packed receipt in its place whole."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)


def read_receipt(path: Path) -> Receipt:
    """The receipt in this file; raises ReceiptError when it is not whole and unaltered."""
    try:
        if path.stat().st_size > _SIZE_LIMIT:
            raise ReceiptError(f"{path} is larger than {_SIZE_LIMIT >> 20} MB: not a receipt")
        content = path.read_bytes()
    except OSError as error:
        raise ReceiptError(
            f"{path} cannot be read ({error.strerror}): give the .receipt.json file that a run wrote"
        ) from None
    return unpacked(content, path)


def unpacked(content: bytes, path: Path) -> Receipt:
    """The receipt that was packed; `path` is what it is called in errors."""
    try:
        body = json.loads(content)
        if not isinstance(body, dict) or "format" not in body:
            raise ReceiptError(f"{path} is not a receipt")
        if body["format"] != FORMAT:
            raise ReceiptError(
                f"{path} has receipt format {body['format']}; this version of Outpace reads {FORMAT}. Make the claim "
                "again with this version, or read it with the one that wrote it"
            )
        if body.pop("sha256", "") != _seal(body):
            raise ReceiptError(f"{path} was altered or cut: its content does not match its hash")
        receipt = _receipt(path, body)
        # Whoever reads the file may read other words than a program does: a key that is there twice, or is not ours.
        if packed(receipt) != content:
            raise ReceiptError(f"{path} was altered: it says more than the receipt that is in it")
        return receipt
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ReceiptError(
            f"{path} is not a receipt, which is JSON ({error}): give the file that a run wrote"
        ) from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ReceiptError(f"{path} is not a whole receipt: {type(error).__name__} {error}") from None


def _receipt(path: Path, body: dict[str, Any]) -> Receipt:
    files = {str(name): base64.b64decode(packed["base64"]) for name, packed in body["task"]["files"].items()}
    for name, stored in body["task"]["files"].items():
        if hashlib.sha256(files[name]).hexdigest() != stored["sha256"]:
            raise ReceiptError(f"{path}: the stored {name} does not match its hash")
    try:
        task = make_task(Path(path.stem), files)
    except TaskError as error:
        raise ReceiptError(f"{path} holds a task that cannot be judged: {error}") from None
    candidate = Candidate(dict(body["candidate"]["files"]), tuple(body["candidate"]["flags"]))
    if (task.hash, candidate.hash) != (body["task"]["hash"], body["candidate"]["hash"]):
        raise ReceiptError(f"{path}: the stored sources do not match their hash")
    flags = body["flags"]
    receipt = Receipt(
        task=task,
        candidate=candidate,
        speed_up=_speed_up(body["claim"]),
        buckets=_buckets(body["buckets"]),
        best_flags=tuple(flags["best"]),
        flags_alone=_read_evidence(flags["alone"]),
        over_best_flags=_read_evidence(flags["over"]),
        jail=str(body["jail"]),
        machine=dict(body["machine"]),
        load=dict(body["load"]),
        version=str(body["outpace"]),
    )
    _check(path, receipt, flags["share"])
    return receipt


def _check(path: Path, receipt: Receipt, share: str) -> None:
    """Refuse a receipt that says what its own content does not bear out."""
    for told in (Evidence(receipt.speed_up, receipt.buckets), receipt.flags_alone, receipt.over_best_flags):
        if told is not None and not _follows(told, receipt.task):
            raise ReceiptError(
                f"{path}: its figure of {told.speed_up.ratio:.3f} does not follow from the receipt's own samples"
            )
    reason = forbidden_change(receipt.task, receipt.candidate)
    if reason:
        raise ReceiptError(f"{path}: the task does not allow its candidate: {reason}")
    if not receipt.speed_up.win:
        raise ReceiptError(f"{path} claims no win: {receipt.speed_up.ratio:.3f}")
    if is_reference(receipt.task, receipt.candidate):
        raise ReceiptError(f"{path} claims that the reference is faster than itself")
    reason = forbidden_change(receipt.task, Candidate(reference(receipt.task).files, receipt.best_flags))
    if reason:
        raise ReceiptError(f"{path}: the task does not allow its best flags: {reason}")
    if share != receipt.flags_share:
        raise ReceiptError(
            f"{path} calls the share of compiler flags '{share}', and its own figures say '{receipt.flags_share}'"
        )


def _follows(told: Evidence, task: Task) -> bool:
    """Whether the samples give the figure by the judge's own test."""
    claim = told.speed_up
    account = reckon(told.buckets, task)
    # Of those whose clocks can be believed: a first look excuses noise, and without a long life nothing bounds a claim.
    if not any(bucket.span is Span.WHOLE for bucket in account.buckets):
        return False
    if claim.win and not math.isfinite(account.lasting):
        return False
    decision = statistics.decide(account.ratios, account.margin)
    found = decision.speed_up
    if found is None or not decision.stop:
        return False
    same = all(math.isclose(getattr(found, end), getattr(claim, end), rel_tol=1e-9) for end in ("ratio", "low", "high"))
    return same and (found.win, found.buckets) == (claim.win, claim.buckets)


def _evidence_row(evidence: Evidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    return {
        "speed_up": dataclasses.asdict(evidence.speed_up),
        "buckets": [_bucket_row(bucket) for bucket in evidence.buckets],
    }


def _read_evidence(row: dict[str, Any] | None) -> Evidence | None:
    if row is None:
        return None
    return Evidence(_speed_up(row["speed_up"]), _buckets(row["buckets"]))


def _speed_up(row: dict[str, Any]) -> SpeedUp:
    found = SpeedUp(**row)
    if type(found.win) is not bool or type(found.buckets) is not int:
        raise ValueError(f"a speed-up that is a win ({found.win!r}) in {found.buckets!r} buckets")
    return found


def _bucket_row(bucket: Bucket) -> dict[str, Any]:
    return {
        "seed": bucket.seed,
        "reference": _life_row(bucket.reference),
        "candidate": _life_row(bucket.candidate),
        "again": dataclasses.astuple(bucket.again),
        "converting": bucket.converting,
        "span": bucket.span,
        "block": bucket.block,
    }


def _buckets(rows: list[dict[str, Any]]) -> tuple[Bucket, ...]:
    # What follows takes time and memory by the square of them.
    if len(rows) > _MOST_BUCKETS:
        raise ValueError(f"{len(rows)} buckets; no judge makes more than {_MOST_BUCKETS}")
    return tuple(_bucket(row) for row in rows)


def _bucket(row: dict[str, Any]) -> Bucket:
    found = Bucket(
        _life(row["reference"]),
        _life(row["candidate"]),
        row["seed"],
        _sample(row["again"]),
        _nanoseconds(row["converting"]),
        Span(row["span"]),
        _nanoseconds(row["block"]),
    )
    if found.block < 1 or any(len(life.turns) % found.block for life in (found.reference, found.candidate)):
        raise ValueError(f"{len(found.reference.turns)} timed turns in blocks of {found.block}")
    return found


def _life_row(life: Life) -> dict[str, Any]:
    """Calls, wall, CPU and delay of each of a worker's turns."""
    return {
        "start": dataclasses.astuple(life.start),
        "opening": dataclasses.astuple(life.opening),
        "late": dataclasses.astuple(life.late),
        "turns": [dataclasses.astuple(sample) for sample in life.turns],
        "asides": [dataclasses.astuple(sample) for sample in life.asides],
    }


def _life(row: Mapping[str, Any]) -> Life:
    turns, asides = (tuple(map(_sample, row[name])) for name in ("turns", "asides"))
    if not 1 <= len(turns) <= _MOST_TURNS or len(asides) > _MOST_TURNS:
        raise ValueError(f"a process with {len(turns)} timed turns and {len(asides)} others")
    opening, late = _sample(row["opening"]), _sample(row["late"])
    if late.calls > opening.calls or late.cpu > opening.cpu or late.wall > opening.wall:
        raise ValueError("of an opening the second half is more than all of it")
    return Life(opening, turns, asides, _sample(row["start"]), late)


def _sample(row: Any) -> Sample:
    return Sample(*map(_nanoseconds, row))


def _nanoseconds(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{str(number)[:80]} is no sample: calls and nanoseconds are whole numbers of at most 63 bits")
    return number


def _packed_file(content: bytes) -> dict[str, str]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "base64": base64.b64encode(content).decode()}


def _seal(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
