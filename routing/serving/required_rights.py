"""Rights that a message needs, for every message that a client may say.

A message is refused (``not-allowed``) before anything of it is looked at but what its right is
asked by, and before anything is changed. It is asked where the client is connected, and once more
by the root, which does what is asked of the whole network: rights may have changed meanwhile. What
depends on more than the message says is asked where that is known: rules of a text
(routing.permission), events one by one (routing.serving.intake), whose a durable sink is
(routing.delivery.durables).

Alice may publish Temp. What she says as ``station`` of Smoke, be it Advertise, Publish, Promise or
Unadvertise, is refused; so is all of it under a name that is Bob's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from routing import messages
from routing.messages import Act
from routing.names import whole_of
from routing.permission import check_any, check_log, check_publishing, check_right, narrowed
from routing.serving.link import Link
from routing.serving.source_names import SourceNames

Check: TypeAlias = Callable[[SourceNames, Link, Any], object]
"""Raises Refusal unless a client may say this."""


class Required(NamedTuple):
    """The right that a message needs, in words, and how it is asked; None: anybody may say it, for
    it touches nothing but what its sender has by other messages.
    """

    says: str
    check: Check | None = None


def check_message(names: SourceNames, link: Link, message: Any) -> None:
    """Raise Refusal unless a client has the right that its message needs."""
    check = REQUIRED[type(message)].check
    if check is not None:
        check(names, link, message)


def _hello(names: SourceNames, link: Link, message: messages.Hello) -> None:
    names.check_free(link.rights, message.name)


def _advertise(names: SourceNames, link: Link, message: messages.Advertise) -> None:
    check_publishing(link.rights, message.types)
    names.check(link.rights, link.name)


def _publish(names: SourceNames, link: Link, message: messages.Publish) -> None:
    events = sum(map(len, message.batches))
    is_refused = link.source is not None and events > link.source.outstanding  # whatever it bears
    for batch in message.batches:
        _may_publish(link, batch.type.name)
        # Recorded events, of parts alone (routing.serving.parts).
        if batch.causes is not None and not is_refused and whole_of(link.name) is not None:
            names.check(link.rights, *batch.causes.ids.source.values)
    _source(names, link, message)


def _source(names: SourceNames, link: Link, message: messages.Promise | messages.Publish) -> None:
    """A promise speaks for all types of its source."""
    if link.source is None:
        names.check(link.rights, link.name)
        check_any(link.rights, Act.PUBLISH)
    elif not link.source.floors.keys() <= link.publishable:
        _may_publish(link, *link.source.floors)


def _may_publish(link: Link, *types: str) -> None:
    """Ask for the right, once a type and link: patterns cost more than a look."""
    for name in types:
        if name not in link.publishable:
            check_right(link.rights, Act.PUBLISH, name)
            link.publishable.add(name)


def _unadvertise(names: SourceNames, link: Link, message: messages.Unadvertise) -> None:
    check_right(link.rights, Act.PUBLISH, *message.types)
    names.check(link.rights, link.name)


def _deploy(names: SourceNames, link: Link, message: messages.Deploy) -> None:
    check_right(link.rights, Act.REMOVE, *message.removes)
    if message.text:
        check_any(link.rights, *((Act.DEPLOY, Act.REPLACE) if message.replace else (Act.DEPLOY,)))
        check_any(link.rights, Act.DEFINE)


def _command(name: str) -> Required:
    def check(names: SourceNames, link: Link, message: object) -> None:
        check_right(link.rights, Act.COMMAND, name)

    return Required(f'`commands` with `"{name}"`', check)


_OWN = "none: of what its sender has"
REQUIRED: Mapping[type, Required] = {
    messages.Hello: Required("a name that is no source's of another user", _hello),
    messages.Advertise: Required("`publish` for each type, `sources` for the name", _advertise),
    messages.Unadvertise: Required("`publish` for each type, `sources` for the name", _unadvertise),
    messages.Publish: Required(
        "`publish` for each type, and for each event where the line has conditions; `sources` for "
        "the name, and for those of recorded events",
        _publish,
    ),
    messages.Promise: Required(
        "`publish` for each type of its source, `sources` for the name", _source
    ),
    messages.Subscribe: Required(
        "`subscribe` for the type; of a durable subscription its user alone",
        lambda _, link, message: narrowed(link.rights, message.filter),
    ),
    messages.Unsubscribe: Required(_OWN),
    messages.Credit: Required(_OWN),
    messages.DealtWith: Required(_OWN),
    messages.Nack: Required(_OWN),
    messages.RemoveDurable: Required("the user whose durable subscription it is"),
    messages.KeepDurable: Required("the user whose durable subscription it is"),
    messages.ResendDurable: Required("the user whose durable subscription it is"),
    messages.Deploy: Required(
        "`deploy` for each rule, or `replace`; `define` for what it defines, `subscribe` for all "
        "that it reads; `remove` for each that goes",
        _deploy,
    ),
    messages.Remove: Required(
        "`remove` for the rule",
        lambda _, link, message: check_right(link.rights, Act.REMOVE, message.name),
    ),
    messages.ListRules: _command("rule list"),
    messages.ShowRule: _command("rule show"),
    messages.StatusRequest: _command("status"),
    messages.ShowNetwork: _command("status"),
    messages.ShowUsers: _command("users"),
    messages.ShowLog: _command("log"),
    messages.ShowQueue: _command("queue"),
    messages.SendAway: _command("expel"),
    messages.ShowTrace: _command("trace"),
    messages.Drain: _command("drain"),
    messages.ReadLog: Required(
        "`subscribe` without conditions for each type that it names",
        lambda _, link, message: check_log(link.rights, message),
    ),
    messages.LogReceived: Required(_OWN),
    messages.Heartbeat: Required("none"),
    messages.Goodbye: Required(_OWN),
}
"""By message what it needs. docs/security.md has it as a table (``rights_table``)."""


def rights_table() -> str:
    """The table of docs/security.md: message, and the right that it needs."""
    rows = (f"| {kind.__name__} | {one.says} |" for kind, one in REQUIRED.items())
    return "\n".join(("| message | needs |", "|---|---|", *rows))
