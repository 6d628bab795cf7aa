"""A run: ask for the next prompt and tell it the reply, over one archive.

These two verbs are all that a loop, a coding agent, a trainer or a remote evaluator needs. Only this module writes to
the archive, and it does so before and after everything that costs money or time, so that a kill loses neither.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from outpace import answer, exemplars, prompt, reward
from outpace.aim import AIMS, FASTER
from outpace.archive import Archive, Reading, RunRecord, Trial
from outpace.budget import Budget, Spent, exhausted, left
from outpace.cost import Cost
from outpace.errors import HarnessError, OutpaceError
from outpace.judge.verdict import TELLS_NOTHING, Outcome, Verdict
from outpace.machine import Machine
from outpace.policies.base import Lesson, Policy, Prompt, Reply, Shown
from outpace.scored import Scored
from outpace.task import Task
from outpace.task.candidate import Candidate, reference

FAILURES_SHOWN = 3
# After so many different candidates in a row that the judge failed on, it is not the candidates.
FAULTS = 3
# Under this key the archive notes why a run ended; nothing while it goes on.
ENDED = "ended"


class Examiner(Protocol):
    """Who judges: a Judge on this machine, or something that asks one elsewhere."""

    def judge(self, candidate: Candidate) -> Verdict:
        """The verdict on one candidate."""
        ...

    def confirm(self, candidate: Candidate) -> Verdict:
        """The verdict again, on fresh inputs and with a process that lives long: what may be published."""
        ...


@dataclass(frozen=True)
class Settings:
    """What makes two runs comparable; stored with the run and not to be changed while it goes on."""

    exemplars: str = exemplars.DEFAULT
    shown: int = 2
    # To each prompt; the policy learns when all of them are judged, and how they compare with each other.
    replies: int = 1
    # What the policy was set to, such as its model: another model under the same name is another run.
    policy: Mapping[str, Any] = field(default_factory=dict)
    aim: str = FASTER.name

    def stored(self) -> dict[str, Any]:
        """As the archive keeps them; what is as it usually is may be left out."""
        usual = {"policy": {}, "aim": FASTER.name, "replies": 1}
        return {name: value for name, value in dataclasses.asdict(self).items() if usual.get(name) != value}


class Run:
    """One search for candidates that serve an aim: faster ones, as a rule."""

    def __init__(
        self,
        archive: Archive,
        task: Task,
        examiner: Examiner,
        policy: Policy,
        *,
        name: str,
        machine: Machine,
        seed: int,
        settings: Settings = Settings(),
        budget: Budget = Budget(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.task = task
        self.policy = policy
        self.settings = settings
        self.aim = AIMS[settings.aim]
        self.budget = budget
        self._archive = archive
        self._examiner = examiner
        self._machine = machine
        self._clock = clock
        self._begun = clock()
        # By candidate: how the judge failed since it last did not.
        self._faults: dict[str, HarnessError] = {}
        facts = dataclasses.asdict(machine)
        self.record: RunRecord = archive.start_run(
            name, task, policy.name, settings.stored(), seed, facts, machine_key=machine.key
        )
        if self.record.policy_state:
            policy.restore(self.record.policy_state)
        self._reference = reference(task)
        # The trial and the text of the reply that was read last, and what was read.
        self._last_read: tuple[int, str, answer.Answer | answer.Unusable] | None = None

    # The two verbs

    def ask(self, n: int = 1) -> list[Prompt]:
        """So many new prompts, each of them once for every reply that it is to have."""
        return [self._prompt_of(trial) for _ in range(n) for trial in self._new_trials()]

    def tell(self, trial: int, reply: Reply) -> Verdict:
        """Judge the reply of the trial of this number, and remember everything."""
        # With the policy's state: one that forgot this proposal in a kill would make it again.
        answered = self._archive.answer(self._open(trial), reply.text, reply.cost, policy_state=self.policy.save())
        return self._judge_reply(answered)

    def next_prompt(self) -> Prompt:
        """The first prompt that still waits for a reply, as after a kill, or else a new one."""
        waiting = [each for each in self._archive.open_trials(self.record) if each.state == "asked"]
        return self._prompt_of(waiting[0]) if waiting else self.ask()[0]

    # Going on after a kill

    def recover(self) -> list[tuple[int, Verdict]]:
        """Judge what was paid for but not judged when the last process ended, and confirm what was not."""
        self._learn()
        answered = [each for each in self._archive.open_trials(self.record) if each.state == "answered"]
        found = [(each.number, self._judge_reply(each)) for each in answered]
        # A confirmation that was too noisy was the machine's doing, and it may be quieter now.
        self._confirm_noisy()
        self._confirm_best()
        return found

    def charge(self, trial: int, cost: Cost) -> None:
        """Count what calls cost that gave no usable reply; the trial goes on waiting for one."""
        if cost != Cost():
            self._archive.add_cost(self._open(trial), cost)

    def ask_again(self, asked: Prompt, reply: Reply) -> Prompt | None:
        """The same prompt with a reminder, when the reply lacks the analysis that the method lives on.

        Such a reply is charged here, so that the reminder comes with what is left after it.
        """
        read = self._read(asked, reply.text)
        if not isinstance(read, answer.Unusable) or not read.missing_analysis:
            return None
        reminder = "Your last reply had no '## Performance Analysis' section. Reply again, with all three sections."
        self.charge(asked.trial, reply.cost)
        return dataclasses.replace(asked, text=f"{asked.text}\n{reminder}\n", remaining=self.remaining())

    # The end of a run

    def go_on(self) -> None:
        """The run is at work from now on, whatever it had ended with."""
        self.note(ENDED, None)

    def end(self, reason: str) -> None:
        """Remember that the run ended, and why, for whoever looks at it later."""
        self.note(ENDED, reason)

    # What others found out about the run

    def note(self, key: str, value: object) -> None:
        """Keep a small fact of the run, anything JSON can hold, in place of what the key held."""
        note(self._archive, self.record, key, value)

    def publish(self, trial: Trial, receipt: bytes) -> None:
        """Keep what was claimed on a trial's confirmation, byte by byte."""
        self._archive.publish(trial, receipt)

    # What is known

    @property
    def archive(self) -> Reading:
        """All that is known of this run and of others."""
        return self._archive

    @property
    def spent(self) -> Spent:
        """What the run has spent; minutes count from the start of this command."""
        return Spent(self._judged(), (self._clock() - self._begun) / 60, self._archive.costs(self.record))

    def why_stop(self) -> str:
        """Why no further prompt should be asked for, or ""."""
        return exhausted(self.budget, self.spent)

    def remaining(self) -> Mapping[str, float]:
        """What is left of the budget."""
        return left(self.budget, self.spent)

    def best(self) -> Scored | None:
        """The best candidate so far, its ratio the confirmed one where there is a confirmation; an attack has none."""
        return self._archive.best(self.record)

    def wins(self) -> list[Scored]:
        """Every candidate that the judge calls a win, first found first."""
        return [each for each in self._archive.scored(self.task.hash, self.record) if each.win]

    def leader(self) -> tuple[Scored, Trial] | None:
        """The best candidate so far and the trial that it stands on, whose confirmation may have failed."""
        best = self.best()
        return None if best is None else (best, self._archive.trial(best.trial))

    def trial(self, number: int) -> Trial | None:
        """What is known of the trial of this number."""
        return self._archive.numbered(self.record, number)

    def outcomes(self) -> dict[str, int]:
        """How many trials ended in each way."""
        return self._archive.outcome_counts(self.record)

    # Inside

    def patiently(self, candidate: Candidate, judge: Callable[[Candidate], Verdict]) -> Verdict:
        """What judging finds; where the judge itself fails, that is recorded as any other verdict.

        Otherwise one candidate on which it always fails would end the run, and every restart of it, for ever.
        """
        try:
            verdict = judge(candidate)
        except HarnessError as fault:
            self._faults[candidate.hash] = fault
            return Verdict(Outcome.UNJUDGED, f"the judge failed on it: {fault}")
        self._faults.clear()
        return verdict

    def _stop_where_nothing_is_judged(self) -> None:
        if len(self._faults) >= FAULTS:
            raise HarnessError(
                f"the judge failed on {len(self._faults)} different candidates in a row, last because "
                f"{next(reversed(self._faults.values()))}: run `outpace doctor`, then the same command again"
            )

    def _judged(self) -> int:
        return sum(self.outcomes().values())

    def _open(self, number: int) -> Trial:
        trial = self.trial(number)
        if trial is None or trial.state == "judged":
            known = [str(each.number) for each in self._archive.open_trials(self.record, 20)]
            state = "was judged already" if trial is not None else "was never asked"
            raise OutpaceError(
                f"trial {number} of run {self.record.name} {state}: open are {', '.join(known) or 'none, so ask first'}"
            )
        return trial

    def _new_trials(self) -> list[Trial]:
        scored = self._archive.scored(self.task.hash, self.record)
        number = self._archive.count(self.record) + 1
        # Chance depends on the run's seed and the trial's number alone, so that a resumed run asks what it would have
        # asked.
        chance = random.Random(f"{self.record.seed}:{number}")
        choice = exemplars.choose(self.settings.exemplars, scored, chance, self.settings.shown)
        shown = [(self._archive.candidate(each.hash), each) for each in choice.shown]
        failures = [
            prompt.Failure(str(trial.verdict.outcome), trial.verdict.reason, trial.design)
            for trial in self._archive.recent_failures(self.record, FAILURES_SHOWN)
            if trial.verdict is not None
        ]
        text = prompt.render(self.task, self._reference, shown, failures, self._machine, self.remaining(), self.aim)
        parent = shown[-1][0] if shown else self._reference
        # Of the last group as many as the budget has trials for: more would stay open for ever.
        replies = self.settings.replies if self.budget.trials is None else self.budget.trials - number + 1
        replies = max(1, min(replies, self.settings.replies))
        return self._archive.ask(self.record, text, choice.shown, parent.hash, replies)

    def _prompt_of(self, trial: Trial) -> Prompt:
        shown = tuple(Shown(self._archive.candidate(each.hash), each) for each in trial.asked.shown)
        parent = self._candidate_of(trial.asked.parent)
        remaining = self.remaining()
        return Prompt(trial.asked.text, self.task, trial.number, self.record.seed, parent, shown, remaining)

    def _candidate_of(self, hash_: str | None) -> Candidate:
        return self._reference if hash_ is None or hash_ == self._reference.hash else self._archive.candidate(hash_)

    def _read(self, asked: Prompt, text: str) -> answer.Answer | answer.Unusable:
        """The reply, read once although it is asked about twice: whether it has an analysis, and what it proposes."""
        if self._last_read is None or self._last_read[:2] != (asked.trial, text):
            parents = {each.candidate.hash: each.candidate for each in asked.shown}
            parents[self._reference.hash] = self._reference
            self._last_read = (asked.trial, text, answer.parse(text, self.task, parents, asked.parent))
        return self._last_read[2]

    def _judge_reply(self, trial: Trial) -> Verdict:
        read = self._read(self._prompt_of(trial), trial.reply or "")
        if isinstance(read, answer.Unusable):
            verdict = Verdict(Outcome.UNUSABLE, read.reason)
            self._archive.settle(trial, analysis=read.analysis, design=read.design, candidate=None, verdict=verdict)
            self._learn()
            return verdict
        # Equal bytes alone share a verdict: __LINE__ makes other code of a comment's worth of lines.
        known = self._archive.find_verdict(self.task.hash, read.candidate.hash, self._machine.key, aim=self.aim)
        duplicate_of, verdict = known or (None, self.patiently(read.candidate, self._examiner.judge))
        settled = self._archive.settle(
            trial,
            analysis=read.analysis,
            design=read.design,
            candidate=read.candidate,
            verdict=verdict,
            parent=read.parent.hash,
            duplicate_of=duplicate_of,
        )
        self._learn()
        self._stop_where_nothing_is_judged()
        self._confirm_best()
        return settled.verdict or verdict

    def _learn(self) -> None:
        """Teach the policy what came of each prompt all of whose replies are judged, after a kill too."""
        for group in self._archive.unlearnt(self.record):
            self.policy.learn(self._lessons(group))
            self._archive.learn(group, self.policy.save())

    def _lessons(self, group: list[Trial]) -> list[Lesson]:
        rewards = [None if each.verdict is None else self.aim.reward(each.verdict) for each in group]
        return [
            Lesson(
                each.number,
                self._candidate_of(each.parent),
                None if each.candidate is None else self._archive.candidate(each.candidate),
                earned,
                gain,
            )
            for each, earned, gain in zip(group, rewards, reward.advantages(rewards, reward.NOISE), strict=True)
        ]

    def _confirm_noisy(self) -> None:
        """Time the fastest candidate again whose confirmation was too noisy, where it would be the best."""
        doubtful = [each for each in self._archive.scored(self.task.hash, self.record) if each.win and each.doubtful]
        best, fastest = self.best(), max(doubtful, key=lambda one: one.ratio, default=None)
        if fastest is not None and best is not None and (best.doubtful or fastest.ratio > best.ratio):
            candidate = self._archive.candidate(fastest.hash)
            verdict = self.patiently(candidate, self._examiner.confirm)
            self._archive.confirm(self._archive.trial(fastest.trial), verdict)
            self._stop_where_nothing_is_judged()

    def _confirm_best(self) -> None:
        """Time the leading candidate again in fresh processes with fresh seeds; only that figure is ever published."""
        for _ in range(self._judged() + 1):
            best = self.best()
            # Whatever is new at the top is confirmed, so a jump too good to be true never stands on one measurement.
            if best is None or not best.win:
                return
            trial = self._archive.trial(best.trial)
            if trial.confirmation is not None:
                return
            verdict = self.patiently(self._archive.candidate(best.hash), self._examiner.confirm)
            self._archive.confirm(trial, verdict)
            self._stop_where_nothing_is_judged()
            # Where the judge failed, the next one is not confirmed before another candidate was judged.
            if verdict.outcome in TELLS_NOTHING:
                return


def note(archive: Archive, run: RunRecord, key: str, value: object) -> None:
    """Keep a small fact of a run that need not be at work, as `Run.note` does."""
    archive.note(run, key, value)
