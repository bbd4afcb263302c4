"""One end of a link between two brokers: ordered, reliable, resumable (brokers.md section 2).

What carries the frames may lose, repeat and reorder them, and break; the two ends make of it a
channel on which every message arrives once and in order, for as long as both remember it.

A link under it may be changed (``move``), for the neighbour may come back on another one; while
there is none, nothing is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from routing import messages
from routing.effects import Close, Effect, Log, Peer, Send
from routing.errors import ProtocolError
from routing.messages import Code, Goodbye, LinkAck, LinkHello, Packet, Routed
from routing.overlay.config import OverlayConfig
from routing.overlay.ends import (
    CHANNEL_MOVES,
    ChannelState,
    DelayKnown,
    Down,
    LinkResult,
    Piling,
    Sent,
    Up,
    link_text,
    tag_of,
)
from routing.overlay.greeting import Greeting
from routing.overlay.retransmission import RetransmissionTimer
from routing.silence import excused

NO_STATES = messages.LinkStates(())
"""Says nothing, and bears a number."""
PILED_EVENTS = 65_536
"""Events in messages that wait or are not acknowledged, from which on these pile up."""
UNACKNOWLEDGED_EVENTS = 4_096
"""Events in messages that have come, from which on these are acknowledged at once: the neighbour
may wait for it."""
_SAID_ANEW = frozenset({messages.Asked, messages.LinkStates})
"""Messages that are said once more when a link is back."""


class Channel:
    """One end. ``now`` is in seconds and never goes back.

    An end is up from the neighbour's greeting until it has been silent for too long, says Goodbye
    or the host reports the link lost; then it greets until it is answered. Messages keep their
    place meanwhile, unless the neighbour returns in another incarnation: then they were for nobody.
    What is not acknowledged is kept and sent again, after a reconnection at once and otherwise when
    it is overdue (retransmission).
    """

    def __init__(
        self, peer: Peer, config: OverlayConfig, now: float, incarnation: int | None = None
    ) -> None:
        self.peer: Peer | None = peer
        """The link that carries it; None while there is none."""
        self.neighbour = ""
        """The neighbour's name, once it has said it."""
        self._config = config
        self._now = self._heard_at = self._sent_at = now
        self._state = ChannelState.GREETING
        self._incarnation = config.incarnation if incarnation is None else incarnation
        self._neighbours_incarnation = 0
        self._silence_s = config.heartbeat_s * config.heartbeats_missed_max
        self._heartbeat_s = config.heartbeat_s / 2
        self._waiting: deque[Routed] = deque()
        self._under_way: deque[Sent] = deque()
        self._ahead: dict[int, Routed] = {}
        self._retransmission = RetransmissionTimer(config.resend_s, config.resend_s_max)
        self._pile_min = max(config.buffer_max // 2, 1)
        self.events = 0
        """Events in the messages that wait or are under way."""
        self._unacknowledged_events = 0
        """Events in the messages that have come and are not acknowledged."""
        self.events_sent = self.events_received = 0
        """Events in all messages that were given for the neighbour, and that came from it."""
        self.piles_up = False
        """Whether messages pile up."""
        self._begin()
        self._acknowledge_at: float | None = None
        self._greeting = Greeting(config.greeting_s)
        self.effects: list[Effect] = []
        """Effects that ``take_effects`` would give."""
        self.results: list[LinkResult] = []
        """Results that ``take_results`` would give."""
        self._greet()

    # --- what it is like ---

    @property
    def state(self) -> ChannelState:
        """Where the conversation stands."""
        return self._state

    @property
    def is_up(self) -> bool:
        """Whether the neighbour is there."""
        return self._state is ChannelState.UP

    @property
    def incarnation(self) -> int:
        """The incarnation of this end. Messages are numbered from 1 for each pair of *incarnations*
        of the two ends; every packet bears the pair's tag, so that what was meant for an earlier
        incarnation is recognised and dropped. One ends when an end forgets the link: its broker
        restarts, or its buffer overflows.
        """
        return self._incarnation

    @property
    def neighbours_incarnation(self) -> int:
        """The neighbour's incarnation; 0 while none has been heard of."""
        return self._neighbours_incarnation

    @property
    def delay_us(self) -> int | None:
        """The link's delay in microseconds; None until it is measured."""
        return self._greeting.delay_us

    @property
    def buffered(self) -> int:
        """How many messages wait or are not acknowledged."""
        return len(self._waiting) + len(self._under_way)

    @property
    def under_way(self) -> int:
        """How many packets are sent and not acknowledged."""
        return len(self._under_way)

    @property
    def facts(self) -> dict[str, Any]:
        """The link as a broker's status shows it."""
        return {
            "neighbour": self.neighbour,
            "link": None if self.peer is None else link_text(self.peer),
            "buffered": self.buffered,
            "sent": self.events_sent,
            "received": self.events_received,
        }

    @property
    def room(self) -> int:
        """How many messages may be given now; one too many ends this end's incarnation, since a
        neighbour that takes nothing for so long has to be told everything anew anyway.
        """
        return self._config.buffer_max - self.buffered

    @property
    def kept(self) -> int:
        """How many packets have come before their turn."""
        return len(self._ahead)

    # --- inputs ---

    def send(self, message: Routed, now: float) -> None:
        """Give a message for the neighbour; it is kept while the link is down."""
        self._now = now
        buffered = len(self._waiting) + len(self._under_way)
        if buffered >= self._config.buffer_max:
            self._start_anew()
            return
        events = _events_of(message)
        self.events += events
        self.events_sent += events
        if buffered >= self._pile_min or self.events >= PILED_EVENTS:
            self._pile(piles_up=True)
        self._waiting.append(message)
        self._push()

    def receive(self, message: messages.FromNeighbour, now: float) -> None:
        """Take in what came over the link. ProtocolError for what a neighbour may not send."""
        self._now = now
        handler = _HANDLERS.get(type(message))
        if handler is None:
            raise ProtocolError(Code.PROTOCOL, f"{type(message).__name__} on a link of brokers")
        if self._state is not ChannelState.CLOSED:
            handler(self, message)

    def lose(self, now: float, reason: str = "the link broke") -> None:
        """The host has lost the link, and may or may not find it again."""
        self._now = now
        self._fall(reason)

    def move(self, peer: Peer | None) -> None:
        """Be carried by another link from now on, or by none. The neighbour may come back on
        another one; while there is none, nothing is sent.
        """
        self.peer = peer

    def measure(self, now: float) -> None:
        """Measure the link's delay (greeting)."""
        self._greeting.measure(now)

    def close(self, now: float, reason: str = "") -> None:
        """Say Goodbye, for good."""
        self._now = now
        if self._state is not ChannelState.CLOSED:
            self._send(Goodbye(reason, Code.CLOSING))
            if self.peer is not None:
                self.effects.append(Close(self.peer, reason or "goodbye"))
            self._enter(ChannelState.CLOSED)

    def handle_timer(self, now: float) -> None:
        """Do what is due: greetings, acknowledgements, signs of life, packets again, silence."""
        self._now = now
        if self._state is ChannelState.GREETING:
            if now >= self._greeting.due_at:
                self._greet()
            return
        if self._state is ChannelState.CLOSED:
            return
        due = self.next_timer()
        if due is not None:
            self._heard_at = excused(self._heard_at, due, now)
        if now >= self._heard_at + self._silence_s:
            self._fall(f"nothing heard for {self._silence_s:g} s")
            return
        if self._greeting.is_measuring and now >= self._greeting.due_at:
            self._greet()
        if self._under_way and now >= self._under_way[0].at + self._retransmission.lasts_s:
            self._retransmission.double()
            self._send_again()
        acknowledge = self._acknowledge_at is not None and now >= self._acknowledge_at
        if acknowledge or now >= self._sent_at + self._heartbeat_s:
            self._acknowledge()

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next; None when nothing waits for time."""
        if self._state is ChannelState.CLOSED:
            return None
        if self._state is ChannelState.GREETING:
            return None if self.peer is None else self._greeting.due_at
        due, heartbeat_at = self._heard_at + self._silence_s, self._sent_at + self._heartbeat_s
        if heartbeat_at < due:
            due = heartbeat_at
        if self._greeting.is_measuring and self._greeting.due_at < due:
            due = self._greeting.due_at
        if self._under_way:
            resend_at = self._under_way[0].at + self._retransmission.lasts_s
            if resend_at < due:
                due = resend_at
        acknowledge_at = self._acknowledge_at
        return due if acknowledge_at is None or due < acknowledge_at else acknowledge_at

    # --- outputs ---

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        effects, self.effects = self.effects, []
        return effects

    def take_results(self) -> list[LinkResult]:
        """Results of the inputs since the last call, in order."""
        results, self.results = self.results, []
        return results

    # --- greetings ---

    def _greet(self) -> None:
        if self._greeting.send(self._now) and self.peer is not None:
            self._log("no broker answers yet", link=link_text(self.peer))
        self._hello(self._greeting.number)

    def _hello(self, number: int, answers: int = 0) -> None:
        config = self._config
        hello = LinkHello(
            messages.LINK_VERSION,
            config.name,
            self._incarnation,
            self._neighbours_incarnation,
            self._received,
            answers,
            config.heartbeat_s,
            config.terms,
            number,
        )
        self._send(hello)

    def _receive_hello(self, hello: LinkHello) -> None:
        if hello.incarnation < self._neighbours_incarnation:
            return  # of an earlier incarnation, and late
        self._heard_at = self._now
        if hello.knows > self._incarnation:
            # This broker's clock has gone back; its former incarnation is over.
            self._incarnation = hello.knows
            self._start_anew()
        fresh = hello.incarnation != self._neighbours_incarnation
        if fresh:
            self._meet(hello)
        elif hello.knows == self._incarnation:
            self._forget_up_to(hello.received)
        self._silence_s = hello.heartbeat_s * self._config.heartbeats_missed_max
        if hello.answers:
            if self._greeting.hear(hello.answers, self._now):
                self.results.append(DelayKnown())
        else:
            self._hello(0, answers=hello.number)
        if not self.is_up:
            self._enter(ChannelState.UP)
            self._retransmission.begin()
            self.results.append(Up(self.neighbour, fresh))
        if fresh or not hello.answers:
            self._send_again()  # what was sent while the neighbour was down is lost
        self._push()

    def _meet(self, hello: LinkHello) -> None:
        """An incarnation of the neighbour that this end did not know."""
        if self._neighbours_incarnation:
            self._fall("the neighbour has started anew")
            self._drop()
        self._neighbours_incarnation = hello.incarnation
        self.neighbour = hello.name
        self._begin()

    def _begin(self) -> None:
        """Numbers start from 1: this pair of incarnations has said nothing yet."""
        assert not self._under_way
        self._next = 1
        self._received = self._acknowledged = self._forgotten = self._unacknowledged_events = 0
        self._ahead.clear()
        self._tag_in = tag_of(self._neighbours_incarnation, self._incarnation)
        self._tag_out = tag_of(self._incarnation, self._neighbours_incarnation)

    def _start_anew(self) -> None:
        """End this end's incarnation: what was kept for the neighbour is dropped."""
        self._incarnation += 1
        self._log("link starts anew", neighbour=self.neighbour)
        self._fall("the buffer has overflowed")
        self._drop()
        self._neighbours_incarnation = 0  # which will be met as if for the first time
        self._begin()
        self._greet()

    def _drop(self) -> None:
        self._waiting.clear()
        self._under_way.clear()
        self.events = 0
        self.piles_up = False

    def _enter(self, state: ChannelState) -> None:
        assert state in CHANNEL_MOVES[self._state], (self._state, state)
        self._state = state

    def _fall(self, reason: str) -> None:
        """The link is down; greet from now on."""
        if self._state is ChannelState.UP:
            self._enter(ChannelState.GREETING)
            self._greeting.wait(self._now)
            self._acknowledge_at = None
            self._drop_what_comes_anew()
            self.results.append(Down(self.neighbour, reason))

    def _drop_what_comes_anew(self) -> None:
        """Requests to the whole network (Asked) do not outlast a loss of the link that this end
        notices: whoever asked does so again, on another way, and should not have it done once more
        when the link is back. Those that were under way, or had come before their turn, leave their
        numbers to messages that say nothing. Link states do not outlast it either at the end that
        tells them: it tells all anew, and may have forgotten by then what it knew.
        """
        self._waiting = deque(one for one in self._waiting if type(one) not in _SAID_ANEW)
        for sent in self._under_way:
            sent.again = True  # when it is acknowledged says nothing of how long that takes
            if type(sent.message) in _SAID_ANEW:
                sent.message = NO_STATES
        for sequence, message in self._ahead.items():
            if type(message) is messages.Asked:
                self._ahead[sequence] = NO_STATES

    def _receive_goodbye(self, message: Goodbye) -> None:
        self._greeting.forget()
        self._fall(message.reason or "goodbye")

    # --- packets ---

    def _receive_packet(self, packet: Packet) -> None:
        """Take a packet in. One that comes again is dropped and acknowledged; one that comes before
        its turn is kept, within the window.
        """
        if packet.tag != self._tag_in or self._state is not ChannelState.UP:
            return
        self._heard_at = self._now
        if packet.acknowledged > self._forgotten:
            self._forget_up_to(packet.acknowledged)
        ahead = packet.sequence - self._received
        if ahead == 1:
            self._take(packet.message)
            while self._ahead and self._received + 1 in self._ahead:
                self._take(self._ahead.pop(self._received + 1))
            if self._acknowledge_at is None:  # else it is due by then in any case
                self._acknowledge_within(self._config.acknowledge_s)
        elif ahead > 1:
            if ahead <= self._config.window_max:
                self._ahead[packet.sequence] = packet.message
        else:
            self._acknowledge_within(0.0)  # it came again: the acknowledgement may be lost
        is_much = self._unacknowledged_events >= UNACKNOWLEDGED_EVENTS
        if is_much or self._received - self._acknowledged >= self._config.window_max // 4:
            self._acknowledge()
        if self._waiting:
            self._push()

    def _take(self, message: Routed) -> None:
        events = _events_of(message)
        self._received += 1
        self.events_received += events
        self._unacknowledged_events += events
        self.results.append(message)

    def _receive_acknowledgement(self, message: LinkAck) -> None:
        if message.tag != self._tag_in or self._state is not ChannelState.UP:
            return
        self._heard_at = self._now
        if message.acknowledged > self._forgotten:
            self._forget_up_to(message.acknowledged)
        if self._waiting:
            self._push()

    def _forget_up_to(self, sequence: int) -> None:
        if sequence >= self._next:
            raise ProtocolError(Code.PROTOCOL, f"packet {sequence} acknowledged, but not sent")
        self._forgotten = sequence
        if self._under_way and self._under_way[0].sequence <= sequence:
            while self._under_way and self._under_way[0].sequence <= sequence:
                last = self._under_way.popleft()
                self.events -= _events_of(last.message)
            if not last.again:
                self._retransmission.note(self._now - last.at)
            if 2 * self.buffered < self._pile_min and 2 * self.events < PILED_EVENTS:
                self._pile(piles_up=False)

    def _pile(self, *, piles_up: bool) -> None:
        """Messages pile up from half of the buffer, or PILED_EVENTS in them, until half of that."""
        if self.piles_up is not piles_up:
            self.piles_up = piles_up
            self.results.append(Piling(self.neighbour))

    def _push(self) -> None:
        """Send what may go out: fewer than ``window_max`` packets are under way."""
        waiting, under_way, most = self._waiting, self._under_way, self._config.window_max
        while waiting and self._state is ChannelState.UP and len(under_way) < most:
            sent = Sent(self._next, waiting.popleft(), self._now)
            self._next += 1
            under_way.append(sent)
            self._send_packet(sent)

    def _send_again(self) -> None:
        for sent in self._under_way:
            sent.at, sent.again = self._now, True
            self._send_packet(sent)

    def _send_packet(self, sent: Sent) -> None:
        self._note_acknowledged()
        self._send(Packet(self._tag_out, sent.sequence, self._received, sent.message))

    def _acknowledge(self) -> None:
        self._note_acknowledged()
        self._send(LinkAck(self._tag_out, self._received))

    def _acknowledge_within(self, seconds: float) -> None:
        due = self._now + seconds
        if self._acknowledge_at is None or due < self._acknowledge_at:
            self._acknowledge_at = due

    def _note_acknowledged(self) -> None:
        self._acknowledged = self._received
        self._unacknowledged_events = 0
        self._acknowledge_at = None

    def _send(self, message: messages.FromNeighbour) -> None:
        self._sent_at = self._now
        if self.peer is not None:
            self.effects.append(Send(self.peer, message))

    def _log(self, text: str, **fields: str) -> None:
        self.effects.append(Log("warning", text, fields))


def _events_of(message: Routed) -> int:
    """Events in a message."""
    return sum(map(len, message.batches)) if isinstance(message, messages.BEARING) else 0


_HANDLERS: Mapping[type, Callable[[Channel, Any], None]] = {
    LinkHello: Channel._receive_hello,
    Packet: Channel._receive_packet,
    LinkAck: Channel._receive_acknowledgement,
    Goodbye: Channel._receive_goodbye,
}
"""Messages that a neighbour may send."""
