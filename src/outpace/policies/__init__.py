"""Policies: who proposes the next candidate, by name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from outpace.errors import PolicyError
from outpace.policies.base import Policy

# Imported when asked for: a policy may need packages that the base install does not have.
POLICIES: Mapping[str, str] = MappingProxyType(
    {
        "moves": "outpace.policies.moves:Moves",
        "replay": "outpace.policies.replay:Replay",
    }
)


def make_policy(name: str, **settings: Any) -> Policy:
    """The policy of this name, with its own settings."""
    if name not in POLICIES:
        raise PolicyError(f"there is no policy '{name}': choose one of {', '.join(POLICIES)}")
    module, _, attribute = POLICIES[name].partition(":")
    factory = getattr(importlib.import_module(module), attribute)
    signature = inspect.signature(factory)
    try:
        signature.bind(**settings)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise PolicyError(f"policy {name} cannot be made so ({error}): its settings are {takes}") from None
    return cast(Policy, factory(**settings))
