"""Policies: who proposes the next candidate, by name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

from outpace.errors import PolicyError
from outpace.policies.base import Policy

# Imported when asked for: a policy may need packages that the base install does not have.
POLICIES: Mapping[str, str] = MappingProxyType(
    {
        "moves": "outpace.policies.moves:Moves",
        "replay": "outpace.policies.replay:Replay",
        "openai": "outpace.policies.openai:OpenAI",
        "command": "outpace.policies.command:Command",
        "agent": "outpace.policies.agent:Agent",
    }
)


def settings_of(name: str) -> dict[str, bool]:
    """What the policy of this name can be set to, and whether it must be."""
    # Keyword-only are the edges, such as the clock: not for users to set.
    return {
        each.name: each.default is each.empty
        for each in inspect.signature(_factory(name)).parameters.values()
        if each.kind is not each.KEYWORD_ONLY
    }


def make_policy(name: str, say: Callable[[str], None] | None = None, **settings: Any) -> Policy:
    """The policy of this name, with its own settings; `say` hears what one that takes its time is at."""
    factory = _factory(name)
    signature = inspect.signature(factory)
    try:
        signature.bind(**settings)
    except TypeError as error:
        takes = ", ".join(settings_of(name)) or "none"
        raise PolicyError(f"policy {name} cannot be made so ({error}): its settings are {takes}") from None
    if say is not None and "say" in signature.parameters:
        settings["say"] = say
    return cast(Policy, factory(**settings))


def _factory(name: str) -> Callable[..., Any]:
    if name not in POLICIES:
        raise PolicyError(f"there is no policy '{name}': choose one of {', '.join(POLICIES)}")
    module, _, attribute = POLICIES[name].partition(":")
    return cast(Callable[..., Any], getattr(importlib.import_module(module), attribute))
