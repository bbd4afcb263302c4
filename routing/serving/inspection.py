"""Requests of operators: who may do what, the last lines of the log, the events that wait in a
durable queue; and that a client goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matcher.model import Event
from routing.delivery.durables import Durables
from routing.effects import Peer
from routing.errors import Refusal
from routing.messages import Code, Confirmed, Rights, SendAway, ShowLog, ShowQueue, ShowUsers
from routing.serving.link import Link, Links
from routing.serving.outlet import Outlet
from routing.serving.users import UserRights

WAITING_SHOWN = 50
"""Events of a queue that are told."""
CHARACTERS_SHOWN = 1 << 20
"""Characters of their texts, about: a text that many events bear is in a queue once."""


@dataclass(eq=False)
class Inspection:
    """Answers operators. ``durables`` gives the durable sinks, and ``expel`` ends a link. Each
    request needs the right to a command of its own (routing.serving.required_rights).
    """

    _links: Links
    _outlet: Outlet
    _durables: Callable[[], Durables]
    _users: UserRights
    _expel: Callable[[Peer, Code, str], None]
    handlers: Mapping[type, Callable[[Link, Any], None]] = field(init=False)
    log_lines: Callable[[], Sequence[str]] = tuple
    """Gives the last lines of the log; the host keeps them."""

    def __post_init__(self) -> None:
        self.handlers = {
            ShowUsers: self._answering(self._show_users),
            ShowLog: self._answering(lambda *_: {"lines": list(self.log_lines())}),
            ShowQueue: self._answering(self._show_queue),
            SendAway: self._answering(self._send_away),
        }

    def _answering(
        self, answer: Callable[[Link, Any], Mapping[str, Any]]
    ) -> Callable[[Link, Any], None]:
        def receive(link: Link, message: Any) -> None:
            self._outlet.note_look(link, message.request)
            detail = answer(link, message)
            if self._links.by_peer.get(link.peer) is link:  # it may have sent itself away
                self._outlet.send(link.peer, Confirmed(message.request, detail))

        return receive

    def _show_users(self, link: Link, message: ShowUsers) -> Mapping[str, Any]:
        connected = [one.rights.user for one in self._links]
        return {
            "users": [
                {**_rights_facts(rights), "name": name, "connected": connected.count(name)}
                for name, rights in sorted(self._users.rights.items())
            ]
        }

    def _show_queue(self, link: Link, message: ShowQueue) -> Mapping[str, Any]:
        """Show the events that wait in a durable queue: they still wait, and count as not
        delivered. Events are shown to users alone who may read all events of their type; of others,
        and of those behind CHARACTERS_SHOWN, their number is told.
        """
        sink = self._durables().get(message.name)
        if sink is None:
            raise Refusal(Code.UNKNOWN, f"there is no durable sink {message.name!r} here")
        waiting = sink.waiting(WAITING_SHOWN)
        may_read = {event.type: link.rights.filters(event.type) is None for _, event in waiting}
        shown, left = list[Mapping[str, Any]](), CHARACTERS_SHOWN
        for number, event in waiting:
            if may_read[event.type] and left > 0:
                shown.append(_event_facts(number, event))
                left -= sum(len(one) for one in event.data.values() if isinstance(one, str))
        return {"events": shown, "hidden": len(waiting) - len(shown), "queued": sink.queued}

    def _send_away(self, link: Link, message: SendAway) -> Mapping[str, Any]:
        """Send a client away by the number of its link: so nobody else goes who has taken its name
        since. It is told ``not-allowed``; clients of this project then stay away.
        """
        found = next((one for one in self._links if one.number == message.client), None)
        if found is None:
            raise Refusal(Code.UNKNOWN, f"there is no client {message.client} here any more")
        by = f" by {link.rights.user}" if link.rights.user else ""
        self._expel(found.peer, Code.NOT_ALLOWED, f"sent away{by}")
        return {"name": found.name}


def _rights_facts(rights: Rights) -> Mapping[str, Any]:
    """The rights of a user: ``may`` is None where all is allowed."""
    limits = {name: getattr(rights.limits, name) for name in rights.limits.__struct_fields__}
    return {
        "tables": list(rights.tables),
        "may": None
        if rights.grants is None
        else [f"{one.act.value} {one.filter or one.name}" for one in rights.grants],
        "limits": {name: value for name, value in limits.items() if value is not None},
    }


def _event_facts(number: int, event: Event) -> Mapping[str, Any]:
    return {
        "number": number,
        "name": f"{event.source}#{event.id}",
        "type": event.type,
        "time": event.time,
        "data": dict(event.data),
    }
