"""Session: an application publishes, subscribes and deploys rules by it.

A Session is a Conversation (what links need of it is there); everything here is sent once the
broker has welcomed it, and what waits until then is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from matcher.model import EventBatch, EventType
from matcher.traces import Contexts
from routing.conversation import Conversation, Lost as Lost, Result as Result, State as State
from routing.errors import SessionError
from routing.messages import Advertise, Deploy, Nack, Subscribe, Unsubscribe, WhenFull
from routing.messages.values import NAME_MAX
from routing.number_set import NumberSet
from routing.outgoing import NO_TIME as NO_TIME
from routing.requests import ClientRequest

_REGEX = re.compile(r"`str` matching regex '.*'")


class Session(Conversation):
    """One client. ``now`` is in seconds since the epoch (it stamps events) and never goes back."""

    # --- a source ---

    def advertise(self, types: Sequence[EventType]) -> int:
        """Announce types (again after each reconnection); gives the request's number.

        What is published before the answer waits for it.
        """
        return self._ask(Advertise(self._requests.number(), tuple(types)))

    def publish(
        self,
        batches: Sequence[EventBatch],
        now: float,
        promise: int | None = None,
        *,
        numbered: bool = False,
    ) -> tuple[int, int]:
        """Publish events, in the order of the batches' ``ids.sequence``; gives their first and last
        sequence number.

        Their source is replaced by the session's name, and their sequence numbers by the session's
        own, unless they are ``numbered``: then these must increase from above ``last_sequence``,
        and gaps are fine (a recording is published under the identities that it bears). Text ids
        are kept; where there are none the sequence number is the id. Events with time ``NO_TIME``
        are stamped with ``now``. ``promise``: nothing earlier will follow.

        Raises SessionFull when ``room`` is less than the batches' length, SessionError when times
        or numbers do not increase as they must, or the session has no name or is closed.
        """
        if not self._config.name:
            raise SessionError("a session without a name cannot publish")
        self._refuse_when_closed()
        self._now = now
        numbers = self.outgoing.add(batches, now, promise, numbered)
        self._publish()
        return numbers

    def promise(self, mark: int) -> None:
        """Nothing earlier than ``mark`` (microseconds) will follow."""
        self.outgoing.promise(mark)
        self._publish()

    # --- a sink ---

    def subscribe(
        self,
        text: str,
        when_full: WhenFull = WhenFull.BLOCK,
        limit: int = 65_536,
        durable: str = "",
        limit_bytes: int = 0,
        limit_age_s: float = 0.0,
        group: str = "",
        by: str = "",
    ) -> tuple[int, int]:
        """Ask for events (again after each reconnection); gives (request, subscription number).
        ``durable``: the name of the durable sink that brings them; ``limit_bytes``,
        ``limit_age_s``, ``group`` and ``by`` as in Subscribe. SessionError as by ``ask``.
        """
        self._last_subscription += 1
        number, own = self._last_subscription, (durable, limit_bytes, limit_age_s, group, by)
        return self.ask(Subscribe, number, text, when_full, limit, False, *own), number

    def acknowledge(self, number: int) -> None:
        """The application has dealt with what a durable sink has brought, in the order in which it
        came, up to the event of that number; nothing follows if it has before.
        """
        for run in self._given.deal_with_all(number):
            self._deal_with(*run)

    def acknowledge_each(self, numbers: Iterable[int]) -> bool:
        """The application has dealt with these events; False if none of them is open."""
        open_ones = [number for number in numbers if self._given.deal_with(number)]
        for run in NumberSet((number, number) for number in open_ones):
            self._deal_with(*run)
        return bool(open_ones)

    def nack(self, number: int, delay_s: float = 0.0, deliveries_max: int = 0) -> bool:
        """The application gives an event of a durable sink back (messages.Nack); False if it is not
        open. If the link is lost meanwhile the event comes again on the next one, at once.
        """
        is_open = self._given.give_back(number)
        if is_open and self._state is State.READY:
            self._send(Nack(number, number, delay_s, deliveries_max))
        return is_open

    def unsubscribe(self, number: int) -> int:
        """End a subscription."""
        return self._ask(Unsubscribe(self._requests.number(), number))

    def consume(self, events: int) -> None:
        """The application has taken ``events`` delivered events: grants the broker new credit."""
        self._backlog -= events
        assert self._backlog >= 0, "more was consumed than was delivered"
        self._grant()

    # --- a rule manager ---

    def deploy(
        self,
        text: str,
        replace: bool = False,
        file: str = "<rules>",
        since: int | None = None,
        removes: Sequence[str] = (),
    ) -> int:
        """Deploy rules; ``Confirmed.detail["rules"]`` has each one's ``since`` and ``version``.

        ``since``: a past instant (microseconds) from which they hold. ``removes``: rules that go by
        the same change. Of a long file name the end is told. SessionError as by ``ask``.
        """
        return self.ask(Deploy, text, replace, file[-NAME_MAX:], since, tuple(removes))

    def ask(self, kind: Callable[..., ClientRequest], *asked: object, **named: object) -> int:
        """Make a request that needs no more than to be made: of the message's class, with what it
        has behind its number. SessionError for what messages of its class may not bear.
        """
        request = kind(self._requests.number(), *asked, **named)
        try:
            fit = msgspec.convert(msgspec.to_builtins(request), type(request))
        except msgspec.ValidationError as error:
            reason = _REGEX.sub("printable `str`", str(error))
            raise SessionError(f"{type(request).__name__}: {reason}") from None
        return self._ask(fit)

    def note_trace(self, own_id: str, contexts: Contexts) -> None:
        """The event that leaves with this id belongs to these traces."""
        self.outgoing.traces.note(self._config.name, own_id, contexts)
