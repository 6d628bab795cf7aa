"""What a report says of the winner's changes: the diff, what each change is worth, and where names of dots stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_archives as made
from outpace.judge.verdict import Outcome, Verdict
from outpace.report import ablation, diff, figures, labels
from outpace.task import variation
from outpace.task.candidate import Candidate, reference
from outpace.task.file import make_task
from outpace.task.lines import with_ends

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "x\r\n", "y\fz\n", "last"]), max_size=30).map("".join)
PLACES_OF = st.tuples(st.integers(0, 300), st.integers(0, 190))


@given(st.lists(PLACES_OF, min_size=1, max_size=8), st.lists(PLACES_OF, max_size=20))
def test_a_name_lies_over_no_dot_and_over_no_other_name(
    line: list[tuple[int, int]], dots: list[tuple[int, int]]
) -> None:
    at = sorted(line)
    found = labels.places([str(10 + number) for number in range(len(at))], at, dots, -4.0)
    boxes = [place.box(dot, 12.0) for place, dot in zip(found, at, strict=True) if place is not None]
    for left, top, right, bottom in boxes:
        assert left >= -4.0
        assert not any(left < x < right and top < y < bottom for x, y in (*at, *dots))
    for number, one in enumerate(boxes):
        assert not any(one[0] < b[2] and b[0] < one[2] and one[1] < b[3] and b[1] < one[3] for b in boxes[number + 1 :])


def test_a_dot_by_itself_has_a_name() -> None:
    assert labels.places(["7"], [(100.0, 50.0)], [], 0.0) == [labels.PLACES[0]]


# The diff and the ablation


@given(LINES, LINES)
def test_taking_back_every_hunk_gives_the_reference_again(before: str, after: str) -> None:
    left = after
    for hunk in reversed(diff.hunks(before, after)):
        lines = with_ends(left)
        old = with_ends(before)[slice(*hunk.old)]
        left = "".join(lines[: hunk.new[0]] + old + lines[hunk.new[1] :])
    assert left == before


@given(LINES, LINES)
def test_a_hunk_taken_back_alone_leaves_one_hunk_fewer_to_the_winner(before: str, after: str) -> None:
    for hunk in diff.hunks(before, after):
        lessened = diff.without(before, after, hunk)
        assert lessened != after
        assert with_ends(lessened)[: hunk.new[0]] == with_ends(after)[: hunk.new[0]]


def test_equal_sources_have_no_parts() -> None:
    own = reference(made.task())
    assert diff.parts(own, own) == ()


def test_of_alternatives_only_those_in_use_are_compared() -> None:
    plain = [f"int use_{name}(void) {{\n    return {at};\n}}\n" for at, name in enumerate("abc")]
    source = "// outpace: alternatives\n"
    for at, text in enumerate(plain):
        body = text if at == 0 else "".join(f"//~ {line}" for line in with_ends(text))
        source += f"// outpace: option {'abc'[at]}\n{body}"
    source += "// outpace: end alternatives\n"
    toml = b'name = "x"\neditable = ["x.c"]\n[entry]\nkind = "c"\nfunction = "int f(int n)"\n'
    files = {"task.toml": toml, "x.c": source.encode(), "judge.py": b"def make_input(rng): ...\n"}
    task = make_task(Path("x"), files)
    own, points = reference(task), variation.points(task)
    winner = variation.apply(points, own, (2,))
    (part,) = diff.parts(own, winner, points)
    assert part.hunk is not None and part.without == own
    said = "".join(line.text for line in part.hunk.lines if line.kind == "old")
    assert said == "// outpace: option a\n" + plain[0].removesuffix("}\n")
    added = "".join(line.text for line in part.hunk.lines if line.kind == "new")
    assert added == "// outpace: option c\n" + plain[2].removesuffix("}\n")
    # The numbers are those of the files.
    rows = with_ends(winner.files["x.c"])
    assert all(rows[line.new - 1] == line.text for line in part.hunk.lines if line.new is not None)
    assert part.title == "x.c, lines 10 to 12"
    # Two of them are two changes, however near.
    twice = make_task(Path("x"), {**files, "x.c": (source + "int between;\n" + source.replace("use_", "go_")).encode()})
    both, points_of_both = reference(twice), variation.points(twice)
    assert [part.title for part in diff.parts(both, variation.apply(points_of_both, both, (2, 1)), points_of_both)] == [
        "x.c, lines 10 to 12", "x.c, lines 21 to 23"]  # fmt: skip
    # What a candidate wrote itself is shown, whatever it looks like.
    hiding = Candidate({"x.c": winner.files["x.c"].replace("return 1;", "return 7;")}, winner.flags)
    (part,) = diff.parts(own, hiding, points)
    assert part.hunk is not None and any("return 7" in line.text for line in part.hunk.lines)


class Scripted:
    """A judge that finds what the test says, by what is lacking."""

    def __init__(self, verdicts: dict[str, list[Verdict]]) -> None:
        self.verdicts = verdicts
        self.asked: list[str] = []

    def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
        winner = made.candidate(3)
        lessened = baseline if candidate == winner else candidate
        lacking = next(part.title for part in diff.parts(lessened, winner))
        self.asked.append(lacking)
        return self.verdicts[lacking].pop(0)


def test_each_change_is_taken_back_and_what_does_not_build_is_called_needed() -> None:
    judge = Scripted(
        {
            "code.c, line 4": [Verdict(Outcome.BUILD_FAILED, "error")],
            # A clear loser has too few buckets for an interval, so the winner is timed against it instead.
            "code.c, line 31": [made.ok(0.5, win=False, buckets=4), made.ok(2.1)],
            "flags -O3 instead of -O2": [made.ok(0.98, win=False)],
        }
    )
    noted = ablation.ablate(reference(made.task()), made.candidate(3), judge)
    rows = figures.ablation(ablation.read_findings(json.loads(json.dumps(noted))))
    assert judge.asked == ["code.c, line 4", "code.c, line 31", "code.c, line 31", "flags -O3 instead of -O2"]
    assert rows[0]["note"] == "needed: build failed without it"
    assert (rows[1]["ratio"], rows[1]["low"]) == (2.1, pytest.approx(2.058))
    assert rows[2]["ratio"] == pytest.approx(1 / 0.98)
    assert rows[2]["low"] < rows[2]["ratio"] < rows[2]["high"]


def test_a_change_that_cannot_be_told_from_noise_is_said_to_be_so() -> None:
    noisy = Verdict(Outcome.TOO_NOISY, "timings vary")
    judge = Scripted(
        {
            "code.c, line 4": [noisy],
            "code.c, line 31": [made.ok(0.5, win=False, buckets=4), noisy],
            "flags -O3 instead of -O2": [noisy],
        }
    )
    found = ablation.read_findings(ablation.ablate(reference(made.task()), made.candidate(3), judge))
    assert {row["note"] for row in figures.ablation(found)} == {"too noisy to tell"}


def test_a_winner_of_one_change_is_not_timed_again() -> None:
    judge = Scripted({})
    only = Candidate(reference(made.task()).files, ("-O3",))
    assert ablation.ablate(reference(made.task()), only, judge)["findings"] == []
