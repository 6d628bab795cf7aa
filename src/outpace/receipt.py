"""Receipts: a claimed speed-up as one file that anyone can judge again."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outpace import __version__
from outpace.candidate import Candidate
from outpace.errors import ReceiptError
from outpace.judge import statistics
from outpace.judge.verdict import Bucket, Sample, SpeedUp, Verdict
from outpace.machine import Load, Machine
from outpace.task import Task
from outpace.taskfile import make_task

FORMAT = 1
# A receipt of a long run holds some hundred kilobytes; more than this is not a receipt.
_SIZE_LIMIT = 64 << 20


@dataclass(frozen=True)
class Receipt:
    """What was claimed, of what, and on which evidence."""

    task: Task
    candidate: Candidate
    speed_up: SpeedUp
    buckets: tuple[Bucket, ...]
    # The same candidate against the reference built with the best flags the task allows, where those differ.
    over_best_flags: SpeedUp | None
    best_flags: tuple[str, ...]
    jail: str
    machine: Mapping[str, Any]
    load: Mapping[str, Any]
    version: str


def make_receipt(
    task: Task,
    candidate: Candidate,
    confirmed: Verdict,
    *,
    jail: str,
    machine: Machine,
    load: Load,
    over_best_flags: SpeedUp | None = None,
    best_flags: tuple[str, ...] = (),
) -> Receipt:
    """The receipt of a confirmed verdict; only a confirmation is ever published."""
    if confirmed.speed_up is None:
        raise ReceiptError(f"a verdict of '{confirmed.outcome}' claims nothing: there is no receipt to write")
    return Receipt(
        task=task,
        candidate=candidate,
        speed_up=confirmed.speed_up,
        buckets=confirmed.buckets,
        over_best_flags=over_best_flags,
        best_flags=best_flags,
        jail=jail,
        machine=dataclasses.asdict(machine),
        load=dataclasses.asdict(load),
        version=__version__,
    )


def write_receipt(receipt: Receipt, path: Path) -> None:
    """Write the receipt as one JSON file, sealed with the hash of its content."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "outpace": receipt.version,
        "claim": dataclasses.asdict(receipt.speed_up),
        "over_best_flags": None if receipt.over_best_flags is None else dataclasses.asdict(receipt.over_best_flags),
        "best_flags": list(receipt.best_flags),
        "jail": receipt.jail,
        "machine": dict(receipt.machine),
        "load": dict(receipt.load),
        "task": {
            "hash": receipt.task.hash,
            "files": {name: _packed(content) for name, content in receipt.task.files.items()},
        },
        "candidate": {
            "hash": receipt.candidate.hash,
            "files": dict(receipt.candidate.files),
            "flags": list(receipt.candidate.flags),
        },
        "buckets": [_bucket_row(bucket) for bucket in receipt.buckets],
    }
    text = json.dumps({**body, "sha256": _seal(body)}, indent=1, sort_keys=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text + "\n")
    temporary.replace(path)


def read_receipt(path: Path) -> Receipt:
    """The receipt in this file; raises ReceiptError when it is not whole and unaltered."""
    try:
        if path.stat().st_size > _SIZE_LIMIT:
            raise ReceiptError(f"{path} is larger than {_SIZE_LIMIT >> 20} MB: not a receipt")
        body = json.loads(path.read_text())
        if not isinstance(body, dict) or "format" not in body:
            raise ReceiptError(f"{path} is not a receipt")
        if body["format"] != FORMAT:
            raise ReceiptError(
                f"{path} has receipt format {body['format']}; this version of Outpace reads {FORMAT}. Update Outpace"
            )
        if body.pop("sha256", "") != _seal(body):
            raise ReceiptError(f"{path} was altered or cut: its content does not match its hash")
        return _receipt(path, body)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ReceiptError(f"{path} cannot be read: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ReceiptError(f"{path} is not a whole receipt: {type(error).__name__} {error}") from None


def _receipt(path: Path, body: dict[str, Any]) -> Receipt:
    files = {str(name): base64.b64decode(packed["base64"]) for name, packed in body["task"]["files"].items()}
    for name, packed in body["task"]["files"].items():
        parts = Path(name).parts
        if Path(name).is_absolute() or ".." in parts:
            raise ReceiptError(f"{path} names a file outside its folder: {name}")
        if hashlib.sha256(files[name]).hexdigest() != packed["sha256"]:
            raise ReceiptError(f"{path}: the stored {name} does not match its hash")
    task = make_task(Path(path.stem), files)
    candidate = Candidate(dict(body["candidate"]["files"]), tuple(body["candidate"]["flags"]))
    if (task.hash, candidate.hash) != (body["task"]["hash"], body["candidate"]["hash"]):
        raise ReceiptError(f"{path}: the stored sources do not match their hash")
    claim, buckets = SpeedUp(**body["claim"]), tuple(_bucket(row) for row in body["buckets"])
    if not _follows(claim, buckets, task):
        raise ReceiptError(f"{path}: the claim of {claim.ratio:.3f} does not follow from the receipt's own samples")
    over = body["over_best_flags"]
    return Receipt(
        task=task,
        candidate=candidate,
        speed_up=claim,
        buckets=buckets,
        over_best_flags=None if over is None else SpeedUp(**over),
        best_flags=tuple(body["best_flags"]),
        jail=body["jail"],
        machine=body["machine"],
        load=body["load"],
        version=body["outpace"],
    )


def _follows(claim: SpeedUp, buckets: tuple[Bucket, ...], task: Task) -> bool:
    """Whether the samples give the claim by the judge's own test."""
    ratios = statistics.log_ratios(buckets, parallel=task.limits.parallel)
    if len(ratios) not in statistics.LOOKS:
        return False
    found = statistics.speed_up(ratios, task.timing.margin)
    same = all(math.isclose(getattr(found, end), getattr(claim, end), rel_tol=1e-9) for end in ("ratio", "low", "high"))
    return same and found.win == claim.win


def _bucket_row(bucket: Bucket) -> dict[str, Any]:
    return {
        "seed": bucket.seed,
        "calls": bucket.calls,
        "reference": [dataclasses.astuple(sample) for sample in bucket.reference],
        "candidate": [dataclasses.astuple(sample) for sample in bucket.candidate],
    }


def _bucket(row: dict[str, Any]) -> Bucket:
    reference, candidate = (tuple(Sample(*sample) for sample in row[side]) for side in ("reference", "candidate"))
    return Bucket(reference, candidate, row["calls"], row["seed"])


def _packed(content: bytes) -> dict[str, str]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "base64": base64.b64encode(content).decode()}


def _seal(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
