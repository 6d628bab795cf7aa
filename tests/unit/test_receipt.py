"""Receipts hold a whole claim, and show when they were altered."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claim_facts import FASTER, HERE, SOURCE, of_buckets, task, timed

from conftest import c_task
from outpace import machine
from outpace.claims import claim
from outpace.claims import receipt as receipts
from outpace.claims.receipt import FlagsShare, Receipt, make_receipt, packed, read_receipt, unpacked, write_receipt
from outpace.claims.reproduction import compared
from outpace.errors import ReceiptError
from outpace.judge import statistics
from outpace.judge.accounts import reckon
from outpace.judge.baseline import Beside
from outpace.judge.verdict import Bucket, Life, Outcome, Sample, Span, Verdict
from outpace.task import Timing
from outpace.task.candidate import Candidate

TASK = c_task("int f(int x) { return x; }", "int f(int x)", "def make_input(rng):\n    return {'x': 1}\n")
OPENING = Sample(0, 900_000, 900_000, 0)
BUCKETS = tuple(
    Bucket(
        Life(OPENING, (Sample(7, time, time, 0),)),
        Life(OPENING, (Sample(7, 430_000, 430_000, 0),)),
        12345,
        span=Span.WHOLE,
    )
    for time in range(1_000_000, 1_008_000, 1_000)
)
NOTHING, LONG = Sample(0, 0, 0, 0), Sample(7, 1_010_000, 1_010_000, 0)
BUCKETS += (Bucket(Life(NOTHING, (LONG,)), Life(NOTHING, (Sample(7, 430_000, 430_000, 0),)), 12345, span=Span.LONG),)
FOUND = statistics.speed_up(reckon(BUCKETS, TASK).ratios, 1.01)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    verdict = Verdict(Outcome.OK, "", FOUND, BUCKETS, 1.0)
    candidate = Candidate({"code.c": "int f(int x) { return x + 0; }"}, ("-O2",))
    facts = machine.Machine("cpu", "x86_64", 2, ("avx2",), "performance", "6.1", "cc", "3.11", 1024)
    place = tmp_path / "claim.json"
    made = make_receipt(TASK, candidate, verdict, None, jail="bubblewrap", machine=facts, load=machine.Load(0.5, 3))
    write_receipt(packed(made), place)
    return place


def altered(path: Path, change: str) -> Path:
    body = json.loads(path.read_text())
    if change == "ratio":
        body["claim"]["ratio"] = 20.0
    elif change == "source":
        body["candidate"]["files"]["code.c"] += " "
    elif change == "format":
        body["format"] = 99
    elif change == "file name":
        body["task"]["files"]["../../evil.py"] = body["task"]["files"]["judge.py"]
    else:
        del body["buckets"]
    # Sealed anew, as somebody who means it would: the seal shows damage, the other checks what was forged.
    del body["sha256"]
    path.write_text(json.dumps({**body, "sha256": receipts._seal(body)}))
    return path


UNUSABLE = ["", ".", "a//b", "a\0b", "a\nb", "/etc/x", "../x", "a/../b", "x" * 256, "d/" * 600 + "x", "judge.py/x"]


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_receipt_whose_files_no_folder_can_hold_is_refused_in_words(path: Path, name: str) -> None:
    body = json.loads(path.read_text())
    body["task"]["files"][name] = body["task"]["files"]["judge.py"]
    del body["sha256"]
    path.write_text(json.dumps({**body, "sha256": receipts._seal(body)}))
    with pytest.raises(ReceiptError, match="its folder holds a file"):
        read_receipt(path)


def test_a_receipt_comes_back_as_it_was(path: Path) -> None:
    receipt = read_receipt(path)
    assert isinstance(receipt, Receipt)
    assert receipt.speed_up == FOUND
    assert receipt.task.hash == TASK.hash
    assert receipt.buckets[0].seed == 12345
    assert receipt.candidate.files["code.c"].endswith("+ 0; }")


@pytest.mark.parametrize("change", ["ratio", "source", "format", "file name", "missing part"])
def test_an_altered_receipt_is_refused(path: Path, change: str) -> None:
    with pytest.raises(ReceiptError):
        read_receipt(altered(path, change))


def test_damage_shows_in_the_seal(path: Path) -> None:
    path.write_text(path.read_text().replace("x + 0", "x + 1"))
    with pytest.raises(ReceiptError, match="does not match its hash"):
        read_receipt(path)


@pytest.mark.parametrize("text", ["[" * 100000, "", "[]", "{}", "not json", '{"format": 1}'])
def test_what_is_no_receipt_is_refused(tmp_path: Path, text: str) -> None:
    place = tmp_path / "x.json"
    place.write_text(text)
    with pytest.raises(ReceiptError):
        read_receipt(place)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReceiptError, match="cannot be read"):
        read_receipt(tmp_path / "none.json")


def test_nothing_in_a_receipt_tells_whose_machine_it_was(path: Path) -> None:
    import getpass
    import socket

    text = path.read_text()
    assert str(path.parent) not in text
    assert f'"{socket.gethostname()}"' not in text and f'"{getpass.getuser()}"' not in text


def test_a_verdict_that_is_not_ok_claims_nothing() -> None:
    facts = machine.Machine("cpu", "x86_64", 2, (), "performance", "6.1", "cc", "3.11", 1024)
    with pytest.raises(ReceiptError, match="claims nothing"):
        make_receipt(
            TASK, Candidate({}), Verdict(Outcome.CRASHED), None, jail="none", machine=facts, load=machine.Load(0, 0)
        )


# The share of compiler flags

CLAIMED = timed(1.43)
ALONE = Beside(("-O3", "-march=native"), timed(1.43), timed(1.0))
HALF = Beside(("-O3", "-march=native"), timed(1.2), timed(1.19))
UNTIMED = Beside(("-O3",), None, Verdict(Outcome.TOO_NOISY, "timings vary"))


def made(candidate: Candidate, beside: Beside | None, confirmed: Verdict = CLAIMED) -> Receipt:
    receipt = make_receipt(task(), candidate, confirmed, beside, jail="none", machine=HERE, load=machine.Load(0, 0))
    return unpacked(packed(receipt), Path("claim.json"))


@pytest.mark.parametrize(
    ("text", "flags", "beside", "share"),
    [
        (FASTER, ("-O2",), None, FlagsShare.NONE),
        (FASTER, ("-O2",), HALF, FlagsShare.PART),
        (FASTER, ("-O3", "-march=native"), ALONE, FlagsShare.ALL),
        (SOURCE, ("-O3", "-march=native"), Beside(("-O3", "-march=native"), None, None), FlagsShare.ALL),
        (SOURCE, ("-O3",), None, FlagsShare.ALL),
        (FASTER, ("-O2",), UNTIMED, FlagsShare.UNKNOWN),
    ],
)
def test_a_receipt_says_how_much_of_it_flags_are(
    text: str, flags: tuple[str, ...], beside: Beside | None, share: FlagsShare
) -> None:
    receipt = made(Candidate({"sum.c": text}, flags), beside)
    assert receipt.flags_share is share
    assert json.loads(packed(receipt))["flags"]["share"] == share
    assert made(receipt.candidate, beside) == receipt, "a receipt comes back as it was"


@pytest.mark.parametrize(
    ("text", "beside", "said"),
    [
        (FASTER, None, ["confirmed in fresh processes).", "No other flags that the task allows make the reference"]),
        (FASTER, HALF, ["confirmed in fresh processes).", "flags -O3 -march=native (1.19x by themselves): 1.18x (99%"]),
        (FASTER, ALONE, ["; all of it is compiler flags: -O3 -march=native.", "(1.42x by themselves): 1.00x (99%"]),
        (SOURCE, None, ["; all of it is compiler flags: -O3.", "Its sources are the reference's own"]),
        (FASTER, UNTIMED, ["; how much of it is compiler flags could not be timed.", "flags -O3 the timings vary"]),
    ],
)
def test_a_claim_says_in_words_how_much_of_it_flags_are(text: str, beside: Beside | None, said: list[str]) -> None:
    sentences = claim.sentences(made(Candidate({"sum.c": text}, ("-O3",)), beside))
    assert len(sentences) == len(said)
    assert all(part in sentence for part, sentence in zip(said, sentences, strict=True)), sentences


def resealed(content: bytes, **flags: object) -> bytes:
    body = json.loads(content)
    body["flags"] |= flags
    del body["sha256"]
    return json.dumps({**body, "sha256": receipts._seal(body)}, indent=1, sort_keys=True).encode() + b"\n"


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        ({"share": "part"}, "calls the share of compiler flags 'part', and its own figures say 'all'"),
        ({"best": ["-O2"], "share": "none"}, None),
        ({"best": ["-O3", "\x1b[2J"]}, "does not allow its best flags"),
        ({"over": {"speed_up": dataclasses.asdict(timed(1.3).speed_up), "buckets": []}}, "does not follow"),  # type: ignore[arg-type]
        ({"over": {"speed_up": {"ratio": "x"}}}, "not a whole receipt"),
    ],
)
def test_a_forged_share_is_refused_unless_the_figures_are_forged_with_it(
    forged: dict[str, object], why: str | None
) -> None:
    content = resealed(packed(made(Candidate({"sum.c": FASTER}, ("-O3", "-march=native")), ALONE)), **forged)
    if why is None:
        # Only judging it again can tell; `verify` then stands the candidate beside the reference under its flags.
        assert unpacked(content, Path("x")).flags_share is FlagsShare.NONE
    else:
        with pytest.raises(ReceiptError, match=why):
            unpacked(content, Path("x"))


@pytest.mark.parametrize(
    "more",
    [
        lambda text: text.replace("{", '{"claim": {"ratio": 50.0, "low": 49.0, "high": 51.0},', 1),
        lambda text: text.replace("{", '{"headline": "50x, confirmed",', 1),
        lambda text: text.replace("\n", " ", 1),
    ],
)
def test_a_receipt_says_nothing_but_what_is_read_in_it(more: Callable[[str], str]) -> None:
    content = packed(made(Candidate({"sum.c": FASTER}, ("-O3",)), None)).decode()
    assert unpacked(content.encode(), Path("x"))
    with pytest.raises(ReceiptError, match="altered"):
        unpacked(more(content).encode(), Path("x"))


def test_more_buckets_than_a_judge_makes_are_not_reckoned_with() -> None:
    body = json.loads(packed(made(Candidate({"sum.c": FASTER}, ("-O3",)), None)))
    body["buckets"] *= 1000
    del body["sha256"]
    content = json.dumps({**body, "sha256": receipts._seal(body)}, indent=1, sort_keys=True).encode() + b"\n"
    with pytest.raises(ReceiptError, match="no judge makes more than"):
        unpacked(content, Path("x"))


def test_what_is_flags_alone_cannot_be_sealed_as_anything_else() -> None:
    content = resealed(packed(made(Candidate({"sum.c": SOURCE}, ("-O3",)), None)), share="none")
    with pytest.raises(ReceiptError, match="its own figures say 'all'"):
        unpacked(content, Path("x"))


def test_the_reference_is_never_claimed_to_be_faster_than_itself() -> None:
    with pytest.raises(ReceiptError, match="reference itself"):
        made(Candidate({"sum.c": SOURCE}, ("-O2",)), None)


def test_a_win_that_was_not_confirmed_has_no_receipt() -> None:
    with pytest.raises(ReceiptError, match="no win"):
        made(Candidate({"sum.c": FASTER}, ("-O2",)), None, timed(1.0))


def test_a_forged_receipt_with_a_low_end_near_1_is_not_reproduced_by_a_small_gain() -> None:
    wide = made(Candidate({"sum.c": FASTER}, ("-O2",)), None, of_buckets([1.04, 5, 5, 5, 5, 5, 5, 8]))
    assert wide.speed_up.ratio > 4.5 and wide.speed_up.low < 1.05, "its samples bear it out, so it can be read"
    assert compared(wide.speed_up, timed(1.09).speed_up) == "smaller here"


def test_a_claim_says_when_work_done_once_has_paid_off_and_what_its_figure_is() -> None:
    opening, turn = Sample(10, 10**6, 10**6, 0), Sample(100, 10**7, 10**7, 0)
    faster = Life(Sample(10, 10**9, 10**9, 0), (Sample(100, 5 * 10**6, 5 * 10**6, 0),) * 2)
    long = Bucket(
        Life(Sample(10**5, 10**10, 10**10, 0), (turn,)), Life(Sample(10**5, 6 * 10**9, 6 * 10**9, 0), (turn,)), 2
    )
    buckets = (*(Bucket(Life(opening, (turn, turn)), faster, 1),) * 8, long)
    said = claim.once(buckets, task())
    assert said.startswith("It may do up to 1,000 ms of work once per process, which pays after 19,990 calls; ")
    assert said.endswith("the figure spreads it over 100,000.")
    assert claim.once((Bucket(Life(opening, (turn,)), Life(opening, (turn,)), 1),) * 8, task()) == ""
    much = dataclasses.replace(buckets[0], converting=20_000)
    assert claim.converting((much,) * 8, task()).startswith(
        "Of its 50 us a call, converting arguments and answers takes 20;"
    )
    assert claim.converting(buckets, task()) == ""
    bundled = dataclasses.replace(task(), timing=Timing(bundle=64))
    assert (claim.figure(task()), claim.figure(bundled)) == ("speed", "throughput in bundles of 64")


def test_a_receipt_whose_samples_cannot_be_reckoned_is_refused_in_words(tmp_path: Path) -> None:
    receipt = tmp_path / "r.json"
    whole = json.loads(packed(made(Candidate({"sum.c": FASTER}, ("-O2",)), None, timed(1.43))))

    def forged(change: Callable[[dict[str, Any]], None]) -> None:
        body = copy.deepcopy(whole)
        body.pop("sha256")
        change(body)
        receipt.write_text(json.dumps({**body, "sha256": receipts._seal(body)}))

    def without_turns(body: dict[str, Any]) -> None:
        for side in ("reference", "candidate"):
            body["buckets"][0][side]["turns"] = []

    for change in (without_turns, lambda body: body["claim"].update(ratio=10**400)):
        forged(change)
        with pytest.raises(ReceiptError, match="is not a whole receipt"):
            read_receipt(receipt)
