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
from outpace.archive import Archive, RunRecord, Trial
from outpace.budget import Budget, Spent, exhausted, left
from outpace.cost import Cost
from outpace.errors import HarnessError
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
    # Trials whose rewards are compared with each other before the policy learns from them.
    group: int = 4
    # What the policy was set to, such as its model: another model under the same name is another run.
    policy: Mapping[str, Any] = field(default_factory=dict)
    aim: str = FASTER.name

    def stored(self) -> dict[str, Any]:
        """As the archive keeps them; a policy without settings and the usual aim are left out."""
        usual = {"policy": {}, "aim": FASTER.name}
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

    # The two verbs

    def ask(self) -> Prompt:
        """The next prompt; after a kill, the one that was asked and never answered."""
        trial = self._archive.open_trial(self.record)
        if trial is None:
            trial = self._new_trial()
        return dataclasses.replace(self._prompt_of(trial), remaining=self.remaining())

    def tell(self, reply: Reply) -> Verdict:
        """Judge the reply to the open prompt, and remember everything."""
        trial = self._archive.open_trial(self.record)
        if trial is None:
            trial = self._new_trial()
        # With the policy's state: one that forgot this proposal in a kill would make it again.
        state = self.policy.save()
        answered = self._archive.answer(trial, reply.text, reply.cost, policy_state=state)
        return self._judge_reply(answered)

    # Going on after a kill

    def recover(self) -> tuple[int, Verdict] | None:
        """Judge a reply that was paid for but not judged when the last process ended, and confirm what was not."""
        trial = self._archive.open_trial(self.record)
        found = (trial.number, self._judge_reply(trial)) if trial is not None and trial.state == "answered" else None
        # A confirmation that was too noisy was the machine's doing, and it may be quieter now.
        self._confirm_noisy()
        self._confirm_best()
        return found

    def charge(self, cost: Cost) -> None:
        """Count what calls cost that gave no usable reply; the prompt stays open."""
        trial = self._archive.open_trial(self.record)
        if trial is not None and cost != Cost():
            self._archive.add_cost(trial, cost)

    def ask_again(self, asked: Prompt, reply: Reply) -> Prompt | None:
        """The same prompt with a reminder, when the reply lacks the analysis that the method lives on.

        Such a reply is charged here, so that the reminder comes with what is left after it.
        """
        parsed = self._parse(asked, reply.text)
        if not isinstance(parsed, answer.Unusable) or not parsed.missing_analysis:
            return None
        reminder = "Your last reply had no '## Performance Analysis' section. Reply again, with all three sections."
        self.charge(reply.cost)
        return dataclasses.replace(asked, text=f"{asked.text}\n{reminder}\n", remaining=self.remaining())

    # The end of a run

    def go_on(self) -> None:
        """The run is at work from now on, whatever it had ended with."""
        self._archive.note(self.record, ENDED, None)

    def end(self, reason: str) -> None:
        """Remember that the run ended, and why, for whoever looks at it later."""
        self._archive.note(self.record, ENDED, reason)

    # What is known

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

    def _new_trial(self) -> Trial:
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
        return self._archive.ask(self.record, text, [each.hash for each in choice.shown], parent.hash)

    def _prompt_of(self, trial: Trial) -> Prompt:
        scores = [self._archive.score(self.record, hash_) for hash_ in trial.exemplars]
        shown = tuple(Shown(self._archive.candidate(each.hash), each) for each in scores if each is not None)
        parent = self._candidate_of(trial.parent)
        return Prompt(trial.prompt, self.task, trial.number, self.record.seed, parent, shown)

    def _candidate_of(self, hash_: str | None) -> Candidate:
        return self._reference if hash_ is None or hash_ == self._reference.hash else self._archive.candidate(hash_)

    def _parse(self, asked: Prompt, text: str, *, require_analysis: bool = True) -> answer.Answer | answer.Unusable:
        parents = {each.candidate.hash: each.candidate for each in asked.shown} | {
            self._reference.hash: self._reference
        }
        return answer.parse(text, self.task, parents, asked.parent, require_analysis=require_analysis)

    def _judge_reply(self, trial: Trial) -> Verdict:
        asked = self._prompt_of(trial)
        parsed = self._parse(asked, trial.reply or "")
        if isinstance(parsed, answer.Unusable):
            return self._settle(
                trial, parsed.analysis, parsed.design, None, Verdict(Outcome.UNUSABLE, parsed.reason), None
            )
        # Equal bytes alone share a verdict: __LINE__ makes other code of a comment's worth of lines.
        known = self._archive.find_verdict(self.task.hash, parsed.candidate.hash, self._machine.key, aim=self.aim)
        duplicate_of, verdict = known or (None, self.patiently(parsed.candidate, self._examiner.judge))
        settled = self._settle(trial, parsed.analysis, parsed.design, parsed.candidate, verdict, duplicate_of)
        self._stop_where_nothing_is_judged()
        self._confirm_best()
        return settled

    def _settle(
        self,
        trial: Trial,
        analysis: str,
        design: str,
        candidate: Candidate | None,
        verdict: Verdict,
        duplicate_of: int | None,
    ) -> Verdict:
        if candidate is not None:
            self.policy.hear(trial.number, candidate, self.aim.reward(verdict))
        if trial.number % self.settings.group == 0:
            self.policy.learn(self._lessons(trial, candidate, verdict))
        settled = self._archive.settle(
            trial,
            analysis=analysis,
            design=design,
            candidate=candidate,
            verdict=verdict,
            duplicate_of=duplicate_of,
            policy_state=self.policy.save(),
        )
        return settled.verdict or verdict

    def _lessons(self, trial: Trial, candidate: Candidate | None, verdict: Verdict) -> list[Lesson]:
        """This trial and the rest of its group, with each one's advantage."""
        first = trial.number - self.settings.group + 1
        members = [
            (
                each.number,
                each.parent,
                None if each.candidate is None else self._archive.candidate(each.candidate),
                each.verdict,
            )
            for each in self._archive.recent_trials(self.record, self.settings.group)
            if first <= each.number < trial.number
        ]
        members.append((trial.number, trial.parent, candidate, verdict))
        rewards = [None if found is None else self.aim.reward(found) for _, _, _, found in members]
        gains = reward.advantages(rewards, reward.NOISE)
        return [
            Lesson(number, self._candidate_of(parent), proposed, gain)
            for (number, parent, proposed, _), gain in zip(members, gains, strict=True)
            if proposed is not None and gain is not None
        ]

    def _confirm_noisy(self) -> None:
        """Time the fastest candidate again whose confirmation was too noisy, where it would be the best."""
        doubtful = [each for each in self._archive.scored(self.task.hash, self.record) if each.win and each.doubtful]
        best, fastest = self.best(), max(doubtful, key=lambda one: one.ratio, default=None)
        if fastest is not None and best is not None and (best.doubtful or fastest.ratio > best.ratio):
            candidate = self._archive.candidate(fastest.hash)
            self._archive.confirm(self._archive.trial(fastest.trial), self.patiently(candidate, self._examiner.confirm))
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
