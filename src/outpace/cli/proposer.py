"""The options of `outpace run` and `outpace attack` that belong to a policy, and who takes which."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from cyclopts import Parameter

from outpace.budget import Budget
from outpace.errors import PolicyError
from outpace.policies import settings_of


@Parameter(name="*")
@dataclass(frozen=True)
class Proposer:
    """Settings of a policy; None leaves each to the policy.

    Parameters
    ----------
    model
        The model's name (policy openai).
    base_url
        The server, such as http://127.0.0.1:8000/v1 for vLLM; OpenAI's own by default. Its key is read from
        OPENAI_API_KEY (policy openai).
    temperature
        How freely the model chooses its words; the server's own choice by default (policy openai).
    max_tokens
        The longest reply in tokens, thinking included; so much is reserved before a call (policy openai).
    timeout
        Give a call up after so many seconds of silence, and make it again (policy openai).
    price_in
        The price of a million tokens of prompt, in any currency (policy openai).
    price_out
        The price of a million tokens of reply (policy openai).
    command
        A program with its arguments that reads a prompt and prints a reply; it runs outside the jail (policy
        command).
    agent_folder
        The folder where prompts are put and replies awaited (policy agent).
    reply_seconds
        The longest that a reply may take (policies openai, command and agent).
    archive
        The archive file whose run is replayed (policy replay).
    run
        The name of the run that is replayed, where that archive has several (policy replay).
    """

    model: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    command: str | None = None
    agent_folder: Path | None = None
    reply_seconds: float | None = None
    archive: Path | None = None
    run: str | None = None

    def given(self) -> dict[str, Any]:
        """The settings that were given."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    def stored(self) -> dict[str, Any]:
        """What is stored with a run, so that another model does not go on with it."""
        kept = {name: value for name, value in self.given().items() if name in _STORED}
        # Some servers go by paths; an archive holds none.
        return kept | {"model": PurePath(self.model).name} if self.model and _is_path(self.model) else kept

    def checked(self, policy: str, budget: Budget) -> dict[str, Any]:
        """The settings that were given, all of which this policy takes; else what to leave out or add."""
        given, takes = self.given(), settings_of(policy)
        if foreign := [name for name in given if name not in takes]:
            own = ", ".join(_option(name) for name in takes if name in _NAMES) or "no settings"
            raise PolicyError(f"policy {policy} does not take {_option(foreign[0])}: it takes {own}")
        for name, needed in takes.items():
            if needed and name in _NAMES and name not in given:
                raise PolicyError(f"policy {policy} needs {_option(name)}: see `outpace run --help`")
        for limit in ("tokens", "money"):
            if getattr(budget, limit) is not None and "price_in" not in takes:
                raise PolicyError(
                    f"policy {policy} does not tell what it spends, so --{limit} cannot hold: "
                    "use --trials or --minutes instead"
                )
        if budget.money is not None and not (given.get("price_in") or given.get("price_out")):
            raise PolicyError("--money needs the prices of a million tokens: give --price-in and --price-out")
        return given


_STORED = ("model", "temperature", "max_tokens")
_NAMES = {each.name for each in dataclasses.fields(Proposer)}


def _is_path(model: str) -> bool:
    # A model's name often has one slash, between owner and model.
    return model.startswith(("/", "~", ".")) or model.count("/") > 1


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
