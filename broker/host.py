"""The live host of a broker: bytes from the transport, time from the clock, effects carried out.

Law 1: one thread owns the node, the transport and the clock. It sleeps until a frame comes, a
timer is due or a signal arrives, and hands the node all messages that are there, bounded by their
number, their bytes and the time that they take. Each is read when the node asks for it, and effects
are carried out as they arise: an event is on its way while the node still keeps its accounts, and a
link that a message costs its sender is closed before more of it is taken in.

Law 2: a peer that cannot be reached any more is lost once everything that has come is read. What
it said before it hung up, its Goodbye above all, would else be ignored as a stranger's.

Law 3: the host decides nothing. What a message means is the node's business (routing/node.py).

Law 4: acknowledgements to sources go last, behind packets to neighbours, and before anything else
that is said to the same source. Temp 7 comes to b1: its delivery leaves at once, then its Forward
to b2 and Acknowledged up to 7 together, so that ZeroMQ's thread, which wants the core that b1 works
on, is woken for both at once.

Law 5: with keys, users take turns (:mod:`broker.turns`), and what comes at once of one who has
taken more than its share is done apart from what others say.

A delivery that no frame holds is not sent: a rule may copy a long text into each attribute of its
event. Who was sent that would hang up, and a durable subscription get it first again, for ever.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from broker.clock import Clock
from broker.descriptors import LOOK_S, Lookout
from broker.drain import Draining
from broker.log import log
from broker.node_store import Keeping
from broker.traces import Tracer, both, noting
from broker.transport import Transport
from broker.turns import Arrived, Turns
from routing import wire
from routing.config import TOGETHER_BYTES_MAX, TOGETHER_MAX, TOGETHER_S_MAX, NodeConfig
from routing.effects import Close, Effect, Log, Send, Store
from routing.messages import Acknowledged, Delivery, Message, Question, Rights
from routing.network.brokers.broker import Broker
from routing.serving.telling import told

GOODBYE_S = 2.0
"""How long, in seconds, a stopping broker waits for its last messages to leave."""


class Host:
    """Runs a node until ``stop``. ``close`` says goodbye to its clients and frees the address."""

    def __init__(
        self,
        broker: Broker,
        transport: Transport,
        clock: Clock,
        keeping: Keeping | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """``keeping``: its store, if any. ``tracer``: sees all that comes and goes, if anything is
        traced.
        """
        self._broker = broker
        self._keeping = keeping
        self._transport = transport
        self._clock = clock
        self._stopping = False
        self._receive = transport.receive
        self._act: Callable[[Effect], object] = self._carry_out
        if tracer is not None:
            self._receive = noting(tracer, transport.receive)
            self._act = both(tracer.note_effect, self._carry_out)
            broker.overlay.queries.finders[Question.TRACE] = tracer.find
        broker.overlay.queries.finders[Question.STATUS] = lambda _: told(broker.status(clock.now()))
        broker.outlet.emit = self._act
        broker.node.rights_of = transport.rights_of
        self._turns = Turns(self._receive, lambda: transport.wait(0), transport.user_of)
        broker.service.work_s = self._turns.spent_s
        self._unreachable: dict[bytes, None] = {}
        """Peers that did not take a message, in order (Law 2)."""
        self._acknowledgements: dict[bytes, Send] = {}
        """The last one to each source, until all else is sent (Law 4)."""
        self._sent: Message | None = None
        """The last message, which others may get, too, and its ``_frames``."""
        self._frames: Sequence[bytes] = ()
        self._fits = True
        """Whether a frame holds each of them."""
        self._has_read_all = True
        """Whether the last time everything was read that had come."""
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        transport.watch(self._wake_read)
        self._lookout = Lookout(self._wake_read)
        if keeping is not None:
            keeping.wake = self.wake
        self._draining = Draining(broker)
        self.when_woken: Callable[[], None] = lambda: None
        """Called in the host's thread after ``wake``."""

    @property
    def wake_descriptor(self) -> int:
        """A byte written to this file descriptor wakes the host (``signal.set_wakeup_fd``)."""
        return self._wake_write

    def wake(self) -> None:
        """Let the host's thread call ``when_woken`` soon. Any thread may call this."""
        os.write(self._wake_write, b"\0")

    def stop(self) -> None:
        """Let ``run`` return soon. Any thread, and a signal handler, may call this."""
        self._stopping = True
        self.wake()

    def drain(self) -> None:
        """Let the node drain; ``run`` returns when that is over. For the host's own thread."""
        self._broker.drain(self._clock.now())

    def configure(self, config: NodeConfig) -> None:
        """Let the node take over what it can change. For the host's own thread."""
        self._broker.configure(config, self._clock.now())

    def change_rights(self, users: Mapping[str, Rights]) -> None:
        """Let the node go by other rights of users. For the host's own thread."""
        self._broker.service.change_rights(users, self._clock.now())

    def run(self) -> None:
        """Serve until ``stop``."""
        broker, transport, clock = self._broker, self._transport, self._clock
        while not self._stopping:
            timer = broker.next_timer()
            pause = LOOK_S if timer is None else min(LOOK_S, timer - clock.now())
            unreachable, self._unreachable = self._unreachable, {}
            has_more = unreachable or self._turns.has_waiting or broker.service.has_more
            woken = transport.wait(0 if has_more else pause)
            message = self._next(now := clock.now())
            self._has_read_all = not self._turns.has_waiting
            if message is not None:
                woken = transport.wait(0) or woken
                if transport.is_readable or self._turns.has_waiting:
                    broker.receive_together(self._read(message, now), now)
                else:
                    broker.receive_frames(*message, now)
                self._turns.rest(clock.now())
            elif broker.service.has_more:
                broker.service.settle()
            if unreachable or transport.has_ended:
                self._lose(unreachable, now)
            if woken:
                self._take_wakes()
            if now >= self._lookout.due_at:
                self._lookout.look(now)
                if self._has_read_all:
                    self._transport.look_at_silent()
                if self._draining.is_over(now):
                    self._stopping = True
            if timer is not None and timer <= now:
                broker.handle_timer(clock.now())
            self._carry_out_rest()

    def _read(self, first: Arrived, begun: float) -> Iterator[Arrived]:
        """The first message, and those that are there behind it (Law 1)."""
        message: Arrived | None = first
        is_busy = self._turns.is_busy
        count = size = 0
        while message is not None:
            yield message
            count += 1
            size += sum(map(len, message[1]))
            late = (now := self._clock.now()) - begun > TOGETHER_S_MAX
            if late or count == TOGETHER_MAX or size > TOGETHER_BYTES_MAX:
                self._has_read_all = False
                return
            if count > 1:
                self._transport.wait(0)
            message = self._next(now)
            if message is not None and self._turns.is_busy is not is_busy:  # Law 5
                self._turns.put_back(message)
                self._has_read_all = False
                return

    def _next(self, now: float) -> Arrived | None:
        """The message to be read next, if any has come (Law 5)."""
        return self._turns.next(now) if self._transport.has_users else self._receive()

    def close(self, reason: str) -> None:
        """Say goodbye to every client and free the addresses."""
        while self._broker.service.has_more:
            self._broker.service.settle()
        self._broker.close(reason, self._clock.now())
        self._carry_out_rest()
        self._transport.close(GOODBYE_S)
        if self._keeping is not None:
            self._keeping.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _take_wakes(self) -> None:
        try:
            woken = os.read(self._wake_read, 4096)
        except BlockingIOError:
            return
        if woken:
            self.when_woken()
            if self._keeping is not None:
                self._look_at_store(self._keeping)

    def _look_at_store(self, keeping: Keeping) -> None:
        """Tell the node what is kept (broker.node_store)."""
        kept = keeping.take_kept()
        self._broker.note_store(keeping.problem, self._clock.now())
        if kept is not None:
            self._broker.stored(kept, self._clock.now())

    def _lose(self, unreachable: dict[bytes, None], now: float) -> None:
        """Lose the links that have ended, and those who were unreachable before all that had come
        was read; if not all of it was, these later (Law 2).
        """
        lost = list(self._transport.take_ended())
        if self._has_read_all and not self._transport.gave_up:
            lost += unreachable
        else:
            self._unreachable = {**unreachable, **self._unreachable}
        for peer in lost:
            self._transport.forget(peer)
            self._turns.forget(peer)
            self._broker.lose(peer, now)

    def _carry_out_rest(self) -> None:
        for effect in self._broker.take_effects():
            self._act(effect)
        while self._acknowledgements:
            self._send(self._acknowledgements.popitem()[1])
        self._sent = None  # else it would be kept for as long as nothing follows

    def _carry_out(self, effect: Effect) -> None:
        if type(effect) is Send:
            if type(effect.message) is Acknowledged:
                self._acknowledgements[effect.peer] = effect
                return
            if effect.peer in self._acknowledgements:
                self._send(self._acknowledgements.pop(effect.peer))
            self._send(effect)
        elif type(effect) is Close:
            self._transport.close_peer(effect.peer)
        elif type(effect) is Store:
            assert self._keeping is not None
            self._keeping.ask(effect)
        else:
            assert type(effect) is Log
            log(effect.level, effect.text, effect.fields, "routing")

    def _send(self, effect: Send) -> None:
        if effect.message is not self._sent:
            self._frames, self._sent = wire.encode(effect.message), effect.message
            self._fits = max(map(len, self._frames)) <= wire.FRAME_MAX
        if not self._fits and type(effect.message) is Delivery:
            fields = {"peer": effect.peer.hex(), "bytes": sum(map(len, self._frames))}
            log("error", "not delivered: an event that no frame holds", fields, "routing")
        elif not self._transport.send(effect.peer, self._frames):
            self._unreachable[effect.peer] = None
