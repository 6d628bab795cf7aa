"""What every policy promises, whatever it is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import Call, refuses, says, serving

from outpace import answer
from outpace.archive import Archive
from outpace.cost import Cost
from outpace.errors import OutpaceError, PolicyError
from outpace.policies import POLICIES, make_policy
from outpace.policies.base import Exhausted, Lesson, Policy, Prompt
from outpace.task import Build, Entry, Task
from outpace.task.candidate import Candidate, reference

SOURCE = b"// outpace: choose 1 2 4 8\n#define UNROLL 4\n"
TASK = Task(
    "made",
    "",
    Path("made"),
    ("k.c",),
    {"k.c": SOURCE},
    Entry("c"),
    Build(flags=("-O2",), flag_choices=(("-O2", "-O3"),)),
)
OWN = reference(TASK)
REPLIES = 3

Make = Callable[[], Policy]


def ask(trial: int) -> Prompt:
    return Prompt(f"Make it faster, trial {trial}.", TASK, trial, 11, OWN, ())


def read(reply: str) -> Candidate:
    found = answer.parse(reply, TASK, {OWN.hash: OWN}, OWN)
    assert isinstance(found, answer.Answer), found
    return found.candidate


def reply_to(trial: int) -> str:
    """What is answered at one of the first REPLIES trials."""
    unroll = ("1", "2", "8")[trial - 1]
    changed = Candidate({"k.c": SOURCE.decode().replace("UNROLL 4", f"UNROLL {unroll}")}, OWN.flags)
    return answer.render(changed, OWN, "The loop counter costs as much as the work.", "Unroll.")


def write_archive(path: Path, name: str = "first") -> Path:
    """A run of REPLIES answered trials, and one that was asked alone."""
    with Archive.open(path, clock=lambda: 0.0) as archive:
        run = archive.start_run(name, TASK, "openai", {}, 1, {}, machine_key="here")
        for number in range(1, REPLIES + 1):
            trial = archive.ask(run, "Make it faster.", (), OWN.hash)[0]
            archive.answer(trial, reply_to(number), Cost(5, 5, 1.0))
        archive.ask(run, "Make it faster.", (), OWN.hash)[0]
    return path


def answers_by_trial(call: Call) -> None:
    """A model whose reply depends on the prompt alone, and which knows no more than REPLIES of them."""
    trial = int(re.findall(r"\d+", call.server.book.prompts[-1])[0])
    (says(reply_to(trial)) if trial <= REPLIES else refuses(400, "no more"))(call)


def write_replies(folder: Path) -> Path:
    """The replies as files, named as the agent policy wants them."""
    folder.mkdir()
    for trial in range(1, REPLIES + 1):
        (folder / f"trial-{trial:04d}.reply.md").write_text(reply_to(trial))
    return folder


@pytest.fixture(params=sorted(POLICIES))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """How to make the policy of each name here, twice over if need be."""
    replies = write_replies(tmp_path / "replies")
    # The clock stands still: what a reply took is part of it, and is not the same twice.
    still: dict[str, Any] = {"clock": lambda: 0.0}
    with serving(answers_by_trial) as book:
        settings: dict[str, Callable[[], dict[str, Any]]] = {
            "moves": dict,
            "replay": lambda: {"archive": write_archive(tmp_path / "runs.db")},
            "openai": lambda: {"model": "m", "base_url": book.url, "environment": {}, **still},
            "command": lambda: {"command": f"sh -c 'cat {replies}/trial-000$OUTPACE_TRIAL.reply.md'", **still},
            "agent": lambda: {"agent_folder": replies, "reply_seconds": -1.0, "wait": lambda _: None, **still},
        }
        if request.param not in settings:
            pytest.fail(f"policy {request.param} is listed but has no settings here: add them to this suite")
        given = settings[request.param]()
        yield lambda: make_policy(request.param, **given)


def test_a_policy_bears_the_name_it_is_listed_under(make: Make, request: pytest.FixtureRequest) -> None:
    assert make().name == request.node.callspec.params["make"]


def test_a_reply_can_be_read(make: Make) -> None:
    policy = make()
    assert all(read(policy.propose(ask(trial)).text) != OWN for trial in range(1, REPLIES + 1))


def test_the_same_prompt_and_state_give_the_same_reply(make: Make) -> None:
    first, second = make(), make()
    for trial in range(1, REPLIES + 1):
        second.restore(first.save())
        assert second.propose(ask(trial)) == first.propose(ask(trial))


def test_lessons_survive_save_and_restore(make: Make) -> None:
    first, second = make(), make()
    candidates = [read(first.propose(ask(trial)).text) for trial in (1, 2)]
    first.learn([Lesson(n + 1, OWN, each, 0.1 * n, 1.0 - 2 * n) for n, each in enumerate(candidates)])
    second.restore(first.save())
    assert second.save() == first.save()
    assert second.propose(ask(3)) == first.propose(ask(3))


def test_an_empty_state_and_no_lessons_are_taken(make: Make) -> None:
    policy = make()
    policy.restore(b"")
    policy.learn([])
    assert read(policy.propose(ask(1)).text) == read(make().propose(ask(1)).text)


def test_a_policy_with_no_more_to_say_raises_a_policy_error(make: Make) -> None:
    policy = make()
    with pytest.raises(PolicyError) as caught:
        for trial in range(1, 100):
            policy.propose(ask(trial))
    assert str(caught.value)


def test_an_unknown_policy_is_refused_and_the_known_are_listed() -> None:
    with pytest.raises(PolicyError, match=r"no policy 'move': choose one of moves, replay"):
        make_policy("move")


def test_an_unknown_or_missing_setting_is_refused_and_the_known_are_listed() -> None:
    with pytest.raises(PolicyError, match="its settings are archive, run"):
        make_policy("replay", file="x")
    with pytest.raises(PolicyError, match="its settings are none"):
        make_policy("moves", temperature=1.0)


def test_a_replay_repeats_the_replies_by_trial_number_at_no_cost(tmp_path: Path) -> None:
    policy = make_policy("replay", archive=write_archive(tmp_path / "runs.db"))
    assert "UNROLL 8" in read(policy.propose(ask(3)).text).files["k.c"]
    assert "UNROLL 1" in read(policy.propose(ask(1)).text).files["k.c"]
    assert policy.propose(ask(1)).cost == Cost()


def test_a_replay_stops_where_the_run_has_no_reply(tmp_path: Path) -> None:
    policy = make_policy("replay", archive=write_archive(tmp_path / "runs.db"))
    with pytest.raises(PolicyError, match="no reply for trial 4, its last is 3") as caught:
        policy.propose(ask(4))
    assert not isinstance(caught.value, Exhausted)


def test_a_replay_of_several_runs_wants_a_name(tmp_path: Path) -> None:
    path = write_archive(write_archive(tmp_path / "runs.db"), "second")
    with pytest.raises(PolicyError, match=r"2 runs \(first, second\)"):
        make_policy("replay", archive=path)
    assert make_policy("replay", archive=path, run="second").propose(ask(1)).text
    with pytest.raises(OutpaceError, match="no run named third"):
        make_policy("replay", archive=path, run="third")


def test_a_replay_of_no_archive_makes_none(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="is no file"):
        make_policy("replay", archive=tmp_path / "missing.db")
    assert list(tmp_path.iterdir()) == []
