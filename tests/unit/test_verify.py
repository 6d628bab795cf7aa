"""`outpace try` writes whole claims, and `outpace verify` says of each figure of one whether it is so here."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from claim_facts import FASTER, SOURCE, Table, of_buckets, task, timed, together

from conftest import Cli
from outpace.claims.receipt import Evidence, packed, read_receipt, write_receipt
from outpace.cli import trial, verify
from outpace.judge.verdict import Outcome, Sample, Verdict
from outpace.task.candidate import Candidate

BOTH = ("-O3", "-march=native")


class Desk(Table):
    """A judge that reads a table, made as a Judge is."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__(task(), together)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def inspect(self) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sum"
    made.mkdir()
    for name, content in task().files.items():
        (made / name).write_bytes(content)
    return made


@pytest.fixture
def receipt(tmp_path: Path, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `outpace try` wrote of a candidate that is 1.3x beside the best flags."""
    monkeypatch.setattr(trial, "Judge", Desk)
    monkeypatch.setattr(verify, "Judge", Desk)
    (tmp_path / "sum.c").write_text(FASTER)
    words = ["try", str(folder), str(tmp_path / "sum.c"), f"--flags={' '.join(BOTH)}", "--no-jail"]
    status, out, err = cli(*words, "--receipt", str(tmp_path / "r.json"))
    assert status == 0, err
    assert "Beside the unchanged reference built with its best flags -O3 -march=native" in out and "verify" in out
    assert json.loads(cli(*words, "--receipt", str(tmp_path / "s.json"), "--json")[1])["flags_share"] == "part"
    return tmp_path / "r.json"


def test_try_writes_the_best_flags_into_its_receipt(receipt: Path) -> None:
    told = read_receipt(receipt)
    assert told.flags_share == "part" and set(told.best_flags) == set(BOTH)
    assert told.over_best_flags is not None and told.over_best_flags.speed_up.win


def test_try_says_that_a_gain_is_flags_alone(folder: Path, cli: Cli, receipt: Path) -> None:
    out = cli("try", str(folder), f"--flags={' '.join(BOTH)}", "--no-jail", "--receipt", str(receipt))[1]
    assert "all of it is compiler flags: -O3 -march=native." in out


def test_try_says_that_no_receipt_was_written_even_where_an_old_one_is(folder: Path, receipt: Path, cli: Cli) -> None:
    before = receipt.read_bytes()
    assert "no receipt was written" in cli("try", str(folder), "--no-jail", "--receipt", str(receipt))[2]
    assert receipt.read_bytes() == before


def test_verify_prints_both_intervals_of_both_figures(receipt: Path, folder: Path, cli: Cli) -> None:
    status, out, _ = cli("verify", str(receipt), "--task", str(folder), "--no-jail")
    lines = out.splitlines()
    assert status == 0
    words = [line.split()[0] for line in lines]
    figure = ["claimed:", "here:", "reproduced"]
    assert words == [*figure, "The", *figure, "Beside", *figure]
    assert all("99% interval" in line for line in lines if line.startswith(("claimed:", "here:")))
    told = json.loads(cli("verify", str(receipt), "--trust", "--no-jail", "--json")[1])
    assert (told["finding"], told["flags_share"]) == ("reproduced", "part")
    assert [(set(each["flags"]), each["finding"]) for each in told["beside"]] == [(set(BOTH), "reproduced")] * 2


@pytest.mark.parametrize(
    ("speed", "finding", "beside", "holds"),
    [
        (1.0, "not reproduced", "not reproduced", False),
        (1.43 * 1.1, "smaller here", "smaller here", False),
        (1.43, "smaller here", "not reproduced", False),
        (1.43 * 2, "larger here", "larger here", True),
    ],
)
def test_verify_ends_with_1_where_less_is_found_than_was_claimed(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, speed: float, finding: str, beside: str, holds: bool
) -> None:
    class Elsewhere(Desk):
        def __init__(self, *_: object, **__: object) -> None:
            super().__init__()
            self.speed = lambda one: speed if one.files["sum.c"] == FASTER else together(one)

    monkeypatch.setattr(verify, "Judge", Elsewhere)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    said = [line for line in out.splitlines() if not line.startswith(("claimed", "here", "Beside", "The unchanged"))]
    assert said == [finding, "reproduced", beside]
    assert (status == 0) is holds


def test_verify_times_the_best_flags_by_themselves_and_fails_where_they_are_worth_more(receipt: Path, cli: Cli) -> None:
    told = read_receipt(receipt)
    assert told.flags_alone is not None
    little = timed(1.02)
    assert little.speed_up is not None
    forged = dataclasses.replace(
        told, flags_alone=dataclasses.replace(told.flags_alone, speed_up=little.speed_up, buckets=little.buckets)
    )
    write_receipt(packed(forged), receipt)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    at = out.splitlines().index("The unchanged reference built with its best flags -O3 -march=native:")
    assert out.splitlines()[at + 3] == "larger here"
    assert status == 1


def test_a_forged_5x_that_reaches_down_to_a_small_gain_is_not_confirmed_by_one(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = of_buckets([1.04, 5, 5, 5, 5, 5, 5, 8])
    assert wide.speed_up is not None and wide.speed_up.low < 1.05
    forged = dataclasses.replace(
        read_receipt(receipt),
        candidate=Candidate({"sum.c": FASTER}, ("-O2",)),
        speed_up=wide.speed_up,
        buckets=wide.buckets,
        best_flags=("-O2",),
        flags_alone=None,
        over_best_flags=None,
    )
    write_receipt(packed(forged), receipt)

    class Elsewhere(Desk):
        def __init__(self, *_: object, **__: object) -> None:
            super().__init__()
            self.speed = lambda one: 1.09 if one.files["sum.c"] == FASTER else 1.0

    monkeypatch.setattr(verify, "Judge", Elsewhere)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    assert status == 1
    claimed, here, finding = out.splitlines()
    assert claimed.startswith("claimed: 4.99x (99% interval 1.040 to 7.992), a win, on ")
    assert here.startswith("here:    1.0") and finding == "smaller here"


def test_verify_does_not_believe_a_receipt_that_leaves_the_flags_out(receipt: Path, cli: Cli) -> None:
    told = read_receipt(receipt)
    forged = dataclasses.replace(
        told,
        candidate=Candidate({"sum.c": SOURCE.replace("return n", "return n + 0")}, BOTH),
        best_flags=told.task.build.flags,
        flags_alone=None,
        over_best_flags=None,
        speed_up=timed(1.43).speed_up or told.speed_up,
        buckets=timed(1.43).buckets,
    )
    write_receipt(packed(forged), receipt)
    assert read_receipt(receipt).flags_share == "none"
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    assert status == 1
    assert "Beside the unchanged reference built with the best flags found here, -O3 -march=native:" in out
    assert out.splitlines()[2] == "reproduced" and out.splitlines()[-1] == "not reproduced"


def test_nothing_in_a_strangers_receipt_reaches_the_terminal_as_a_control_character(receipt: Path, cli: Cli) -> None:
    told = read_receipt(receipt)
    write_receipt(packed(dataclasses.replace(told, machine={"cpu": "fast\x1b[2J\u202e"})), receipt)
    out = cli("verify", str(receipt), "--trust", "--no-jail")[1]
    assert "fast⟨U+001B⟩[2J⟨U+202E⟩" in out and "\x1b" not in out and "\u202e" not in out


def test_nothing_in_a_strangers_receipt_reaches_the_terminal_as_a_line_of_its_own(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = read_receipt(receipt)
    forged = "a CPU\nhere:    40.01x, a win\nreproduced\r\x85\u2028claimed: 1.00x" + 200 * "."
    write_receipt(packed(dataclasses.replace(told, machine={"cpu": forged})), receipt)
    honest = len(cli("verify", str(receipt), "--trust", "--no-jail")[1].splitlines())

    class Crashing(Desk):
        def confirm(self, *_: object) -> Verdict:
            return Verdict(Outcome.CRASHED, "it said: nothing\nreproduced\nreproduced")

    assert honest == 11
    monkeypatch.setattr(verify, "Judge", Crashing)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    lines = out.splitlines()
    assert status == 1 and [line.split()[0] for line in lines] == ["claimed:", "here:", "not"]
    assert len(lines[0]) < 200 and lines[1].count("reproduced") == 2


def forged(receipt: Path, **parts: object) -> None:
    write_receipt(packed(dataclasses.replace(read_receipt(receipt), **parts)), receipt)  # type: ignore[arg-type]


def evidence(ratio: float) -> Evidence:
    found = timed(ratio)
    assert found.speed_up is not None
    return Evidence(found.speed_up, found.buckets)


def seen_by(monkeypatch: pytest.MonkeyPatch, speed: Callable[[Candidate], float | None]) -> None:
    class Elsewhere(Desk):
        def __init__(self, *_: object, **__: object) -> None:
            super().__init__()
            self.speed = speed

    monkeypatch.setattr(verify, "Judge", Elsewhere)


def faster(candidate: Candidate) -> bool:
    return candidate.files["sum.c"] == FASTER


def test_a_gain_beside_flags_that_are_worse_than_the_tasks_own_is_not_borne_out(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The candidate is 1.43x whatever the flags, and -O3 makes the reference slower: beside that it is 1.79x.
    whole, worse = evidence(1.43), evidence(1.43 / 0.8)
    forged(
        receipt,
        candidate=Candidate({"sum.c": FASTER}, ("-O2",)),
        speed_up=whole.speed_up,
        buckets=whole.buckets,
        best_flags=("-O3",),
        flags_alone=None,
        over_best_flags=worse,
    )
    seen_by(monkeypatch, lambda one: 1.43 if faster(one) else 0.8 if "-O3" in one.flags else 1.0)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    lines = out.splitlines()
    assert status == 1
    assert lines[2] == lines[6] == "reproduced", "both figures are true"
    assert lines[7] == "Beside the unchanged reference built with the best flags found here, -O2:"
    assert lines[-1] == "smaller here"


def test_a_gain_beside_flags_under_which_the_reference_is_wrong_is_not_borne_out(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, far = evidence(1.43), evidence(13.0)
    forged(
        receipt,
        candidate=Candidate({"sum.c": FASTER}, ("-O2",)),
        speed_up=whole.speed_up,
        buckets=whole.buckets,
        best_flags=("-O2", "-march=native"),
        flags_alone=evidence(1.02),
        over_best_flags=far,
    )
    seen_by(monkeypatch, lambda one: 1.43 if faster(one) else None if "-march=native" in one.flags else 1.0)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    assert status == 1
    assert out.count("here:    wrong: expected 3, got 4") == 2 and out.count("not reproduced") == 2


@pytest.mark.parametrize("share", [1.0, 1.2])
def test_a_share_of_flags_that_could_not_be_timed_there_is_not_left_out_where_it_can_be_here(
    receipt: Path, cli: Cli, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evidence(1.43)
    forged(
        receipt,
        candidate=Candidate({"sum.c": FASTER}, BOTH),
        speed_up=whole.speed_up,
        buckets=whole.buckets,
        best_flags=BOTH,
        flags_alone=None,
        over_best_flags=None,
    )
    assert read_receipt(receipt).flags_share == "unknown"
    seen_by(monkeypatch, lambda one: 1.43 if faster(one) else 1.43 / share if set(BOTH) <= set(one.flags) else 1.0)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    assert status == 1 and out.splitlines()[3] == "reproduced"
    assert "Beside the unchanged reference built with the best flags found here, -O3 -march=native:" in out
    # A machine on which it cannot be timed either has found nothing that was left out.
    compare = Desk.compare

    def noisy(self: Desk, candidate: Candidate, baseline: Candidate) -> Verdict:
        beside = faster(candidate) and baseline.flags != ("-O2",)
        return Verdict(Outcome.TOO_NOISY, "timings vary") if beside else compare(self, candidate, baseline)

    monkeypatch.setattr(Desk, "compare", noisy)
    assert cli("verify", str(receipt), "--trust", "--no-jail")[0] == 0


def test_other_flags_may_be_the_best_here_if_they_leave_as_much_of_the_gain(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(candidate: Candidate) -> float:
        # There -O3 and -march=native together were worth 1.43, here -march=native alone is, and together they are 1.4.
        flags = 1.0 if "-march=native" not in candidate.flags else 1.4 if "-O3" in candidate.flags else 1.43
        return flags * (1.33 if faster(candidate) else 1.0)

    seen_by(monkeypatch, elsewhere)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    assert status == 0, out
    assert "the best flags found here, -O2 -march=native" in out


def test_a_confirmation_that_is_too_noisy_is_made_once_more(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Restless(Desk):
        def confirm(self, candidate: Candidate, baseline: Candidate | None = None) -> Verdict:
            self.asked.append(("confirm",))
            if self.asked.count(("confirm",)) % 2:
                return Verdict(Outcome.TOO_NOISY, "timings vary")
            return super().confirm(candidate, baseline)

    monkeypatch.setattr(verify, "Judge", Restless)
    assert cli("verify", str(receipt), "--trust", "--no-jail")[0] == 0


def test_verify_ends_with_1_where_a_claim_leaves_once_work_out(
    receipt: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = Desk.compare

    def busy(self: Desk, candidate: Candidate, baseline: Candidate) -> Verdict:
        verdict = compare(self, candidate, baseline)
        start = Sample(0, 10**8, 10**8, 0)
        buckets = tuple(
            dataclasses.replace(bucket, candidate=dataclasses.replace(bucket.candidate, start=start))
            for bucket in verdict.buckets
        )
        return dataclasses.replace(verdict, buckets=buckets)

    monkeypatch.setattr(Desk, "compare", busy)
    status, out, _ = cli("verify", str(receipt), "--trust", "--no-jail")
    assert status == 1
    last = out.splitlines()[-1]
    assert last.startswith("Not borne out: once per process it does 100.0 ms of work here or more, which pays after ")
    assert last.endswith("the receipt says nothing of it")
    told = json.loads(cli("verify", str(receipt), "--trust", "--no-jail", "--json")[1])
    assert told["not_borne_out"] == [last]
