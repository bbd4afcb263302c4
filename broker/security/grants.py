"""Lines of the access file that allow something: ``subscribe = ['Trade(desk = "fx")', "Rate*"]``.

Names are those of event types for ``publish``, ``subscribe`` and ``define``, of rules for
``deploy``, ``replace`` and ``remove``, of commands for ``commands``. ``*`` stands for anything in
them. What may be published or subscribed to may be a filter as ``rexmq sub`` takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from broker.errors import ConfigurationError
from routing.messages import COMMANDS, Act, Permit
from rules.errors import RuleErrors
from rules.subscription import check_filter

ACTS: Mapping[str, Act] = {act.value: act for act in Act}
"""The rights that a table may give, by key."""
ANY = "*"
_EXAMPLES = {
    Act.SUBSCRIBE: """["Temp", "T*", 'Trade(desk = "fx")']""",
    Act.COMMAND: '["status", "rule list"]',
}


def grants_of(act: Act, said: Any, line: int, place: str) -> Iterator[Permit]:
    """The grants of a line; ConfigurationError, which names the ``place``."""
    if not isinstance(said, list) or not all(isinstance(one, str) and one for one in said):
        example = _EXAMPLES.get(act, '["Temp", "T*"]')
        raise ConfigurationError(f"{place}: expected a list of names such as {example}")
    for text in said:
        if act is Act.COMMAND and text not in (*COMMANDS, ANY):
            expected = ", ".join(map(repr, (*COMMANDS, ANY)))
            raise ConfigurationError(f"{place}: no command is {text!r}; expected {expected}")
        if "(" not in text:
            yield Permit(act, text, line)
        elif act in (Act.SUBSCRIBE, Act.PUBLISH):
            yield Permit(act, _type_of(text, place), line, text)
        else:
            raise ConfigurationError(f"{place}: expected a name without conditions, found {text!r}")


def _type_of(text: str, place: str) -> str:
    try:
        return check_filter(text)
    except RuleErrors as errors:
        raise ConfigurationError(f"{place}: {text!r} is no filter: {errors}") from None
