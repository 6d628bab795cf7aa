"""Receipts hold a whole claim, and show when they were altered."""

import json
from pathlib import Path

import pytest

from conftest import c_task
from outpace import machine
from outpace import receipt as receipts
from outpace.candidate import Candidate
from outpace.cli.verify import compare
from outpace.errors import ReceiptError
from outpace.judge import statistics
from outpace.judge.verdict import Bucket, Outcome, Sample, SpeedUp, Verdict
from outpace.receipt import Receipt, make_receipt, read_receipt, write_receipt

BUCKETS = tuple(Bucket((Sample(1000 + at, 1000 + at, 0),), (Sample(430, 430, 0),), 7, 12345) for at in range(8))
FOUND = statistics.speed_up(statistics.log_ratios(BUCKETS, parallel=False), 1.01)
TASK = c_task("int f(int x) { return x; }", "int f(int x)", "def make_input(rng):\n    return {'x': 1}\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    verdict = Verdict(Outcome.OK, "", FOUND, BUCKETS, 1.0)
    candidate = Candidate({"code.c": "int f(int x) { return x + 0; }"}, ("-O2",))
    facts = machine.Machine("cpu", "x86_64", 2, ("avx2",), "performance", "6.1", "cc", "3.11", 1024)
    place = tmp_path / "claim.json"
    write_receipt(
        make_receipt(TASK, candidate, verdict, jail="bubblewrap", machine=facts, load=machine.Load(0.5, 3)), place
    )
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


def test_a_claim_holds_only_when_it_is_a_win_of_that_size_here() -> None:
    def here(low: float, high: float, win: bool) -> Verdict:
        return Verdict(Outcome.OK, "", SpeedUp((low + high) / 2, low, high, win, 8))

    assert compare(FOUND, here(2.2, 2.5, True)) == "the claim holds on this machine"
    assert "smaller" in compare(FOUND, here(1.5, 1.6, True))
    assert "does not hold" in compare(FOUND, here(0.99, 1.02, False))
    assert "does not hold" in compare(FOUND, Verdict(Outcome.WRONG, "no"))


def test_a_verdict_that_is_not_ok_claims_nothing() -> None:
    facts = machine.Machine("cpu", "x86_64", 2, (), "performance", "6.1", "cc", "3.11", 1024)
    with pytest.raises(ReceiptError, match="claims nothing"):
        make_receipt(TASK, Candidate({}), Verdict(Outcome.CRASHED), jail="none", machine=facts, load=machine.Load(0, 0))
