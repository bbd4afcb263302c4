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
from routing.messages import (
    Advertise,
    Deploy,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    WhenFull,
)
from routing.messages.values import DOCUMENT_MAX, NAME_MAX, TEXT_MAX
from routing.number_set import NumberSet
from routing.outgoing import NO_TIME as NO_TIME, Outgoing
from routing.requests import ClientRequest

_REGEX = re.compile(r"`str` matching regex '.*'")


class Session(Conversation):
    """One client. ``now`` is in seconds since the epoch (it stamps events) and never goes back."""

    # --- a source ---

    @property
    def outgoing(self) -> Outgoing:
        """Its events on their way, for who asks how far they are with every event."""
        return self._outgoing

    @property
    def room(self) -> int:
        """How many events ``publish`` takes now; 0 until the first Welcome, and when full."""
        return self._outgoing.room

    @property
    def unacknowledged(self) -> int:
        """How many events wait for credit or, where they are kept, for acknowledgement."""
        return self._outgoing.unacknowledged

    @property
    def acknowledged(self) -> int:
        """The number up to which the broker has dealt with everything, as it has said."""
        return self._outgoing.acknowledged

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last event given to ``publish``."""
        return self._outgoing.last_sequence

    def advertise(self, types: Sequence[EventType]) -> int:
        """Announce types (again after each reconnection); gives the request's number.

        What is published before the answer waits for it.
        """
        return self._ask(Advertise(self._requests.number(), tuple(types)))

    def unadvertise(self, names: Sequence[str]) -> int:
        """Announce that these types will be published no more."""
        return self._ask(Unadvertise(self._requests.number(), tuple(names)))

    def publish(
        self, batch: EventBatch, now: float, promise: int | None = None, *, numbered: bool = False
    ) -> tuple[int, int]:
        """Publish events; gives their first and last sequence number.

        The batch's source is replaced by the session's name, and its sequence numbers by the
        session's own, unless it is ``numbered``: then they must increase from above
        ``last_sequence``, and gaps are fine (a recording is published under the identities that
        it bears). Text ids are kept; where there are none the sequence number is the id. Events
        with time ``NO_TIME`` are stamped with ``now``. ``promise``: nothing earlier will follow.

        Raises SessionFull when ``room`` is less than the batch's length, SessionError when times
        or numbers do not increase as they must, or the session has no name or is closed.
        """
        return self.publish_all((batch,), now, promise, numbered=numbered)

    def publish_all(
        self,
        batches: Sequence[EventBatch],
        now: float,
        promise: int | None = None,
        *,
        numbered: bool = False,
    ) -> tuple[int, int]:
        """The same for batches of several types that belong to one promise.

        The batches' own ``ids.sequence`` gives the order in which their events are meant.
        """
        if not self._config.name:
            raise SessionError("a session without a name cannot publish")
        self._refuse_when_closed()
        self._now = now
        numbers = self._outgoing.add(batches, now, promise, numbered)
        self._publish()
        return numbers

    def promise(self, mark: int) -> None:
        """Nothing earlier than ``mark`` (microseconds) will follow."""
        self._outgoing.promise(mark)
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
    ) -> tuple[int, int]:
        """Ask for events (again after each reconnection); gives (request, subscription number).
        ``durable``: the name of the durable sink that brings them; ``limit_bytes``, ``limit_age_s``
        as in Subscribe.

        Raises SessionError for a filter that is longer than messages may bear.
        """
        _check_length("a filter", text, TEXT_MAX)
        self._last_subscription += 1
        number = self._last_subscription
        request = self._requests.number()
        _check_length("the name of a durable sink", durable, NAME_MAX)
        own = durable, limit_bytes, limit_age_s
        asked = Subscribe(request, number, text, when_full, limit, False, *own)
        return self._ask(asked), number

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
        the same change. Of a long file name the end is told. Raises SessionError for a text that is
        longer than messages may bear.
        """
        _check_length("a text of rules", text, DOCUMENT_MAX)
        asked = text, replace, file[-NAME_MAX:], since, tuple(removes)
        return self._ask(Deploy(self._requests.number(), *asked))

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
        self._outgoing.traces.note(self._config.name, own_id, contexts)


def _check_length(what: str, text: str, most: int) -> None:
    if len(text) > most:
        raise SessionError(f"{what} has at most {most:,} characters, not {len(text):,}")
