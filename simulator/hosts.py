"""Hosts that drive the protocols: they carry out their effects and call their timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from matcher.model import TIME_MIN, EventBatch
from routing import wire
from routing.config import TOGETHER_BYTES_MAX, TOGETHER_MAX, TOGETHER_S_MAX
from routing.effects import Close, Effect, Log, Peer, Send, Store
from routing.leaving import go_on_draining
from routing.network.brokers.broker import Broker
from simulator.due import Due
from simulator.lanes import Frames, Lane
from simulator.simulation import Simulation
from simulator.stores import SimulatedStore

LOOK_S = 1.0
"""Seconds between the looks at a broker that drains, as of a live host."""


class Machine(Protocol):
    """A protocol's state machine, as its host sees it."""

    def handle_timer(self, now: float) -> None:
        """Do what is due."""
        ...

    def next_timer(self) -> float | None:
        """When that is."""
        ...

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        ...


class Driver:
    """One machine: its effects and its timer. ``send`` and ``close`` carry out the effects.

    ``after`` is called when they are, and may use the machine in turn. ``note`` is given what the
    machine writes into its log, ``store`` what it would have kept. A driver knows no protocol: it
    gives the machine what came and the time.
    """

    def __init__(
        self,
        simulation: Simulation,
        machine: Machine,
        send: Callable[[Peer, Frames], None],
        close: Callable[[Peer], None],
        after: Callable[[], None] | None = None,
        note: Callable[[Log], None] | None = None,
        store: Callable[[Store], None] | None = None,
    ) -> None:
        self._simulation = simulation
        self._machine = machine
        self._note = note
        self._store = store
        self._send = send
        self._close = close
        self._after = after
        self._armed: float | None = None
        self._is_running = True

    def stop(self) -> None:
        """Do nothing more, whatever is due."""
        self._is_running = False

    def settle(self) -> None:
        """Carry out what the machine wants done; to be called after every input."""
        effects = self._machine.take_effects()
        if effects:
            self._carry_out(effects)
        if self._after is not None:
            self._after()
            while effects := self._machine.take_effects():
                self._carry_out(effects)
                self._after()
        due = self._machine.next_timer()
        if due is not None and (self._armed is None or due < self._armed):
            self._armed = due
            self._simulation.after(max(0.0, due - self._simulation.now), self._fire, due)

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is Send:
                self._send(effect.peer, wire.encode(effect.message))
            elif isinstance(effect, Close):
                self._close(effect.peer)
            elif isinstance(effect, Store):
                assert self._store is not None
                self._store(effect)
            elif isinstance(effect, Log) and self._note is not None:
                self._note(effect)

    def _fire(self, event: Due) -> None:
        armed = self._armed
        if not self._is_running or armed is None or event.what != armed:
            return  # another one was armed for an earlier moment, and has fired since
        self._armed = None
        due, now = self._machine.next_timer(), self._simulation.now
        # Arrivals may have put it off; rounding may have made the moment come too early.
        if due is not None and due <= max(now, armed):
            self._machine.handle_timer(max(now, due))
        self.settle()


class Bill(Protocol):
    """Seconds that a broker's processor spends on the messages of one step."""

    def of(self, frames: Frames, rules: int) -> float:
        """For a message that comes to a broker that evaluates so many rules."""
        ...

    def sent(self, frames: Frames) -> float:
        """For a message that is sent."""
        ...


class Pricing(Protocol):
    """Seconds that a broker's processor spends on steps."""

    @property
    def waking_s(self) -> float:
        """For a step for which it has to be woken."""
        ...

    def step(self) -> Bill:
        """For what one step takes in and sends."""
        ...


@dataclass(frozen=True, slots=True)
class Costs:
    """For each message that comes so much, and so much a byte."""

    message_s: float = 0.0
    byte_s: float = 0.0

    @property
    def waking_s(self) -> float:
        """Nothing."""
        return 0.0

    def step(self) -> Costs:
        """Each step's messages cost the same."""
        return self

    def of(self, frames: Frames, rules: int) -> float:
        """The seconds for one message."""
        return self.message_s + self.byte_s * sum(map(len, frames))

    def sent(self, frames: Frames) -> float:
        """Nothing."""
        return 0.0


FREE = Costs()
"""Processing takes no time."""


class Processor:
    """Takes messages in, all together that wait, in a step whose bounds are those of the live host;
    ``slowness`` multiplies what they cost.

    They are taken in at the end of the time that they cost. What is sent then goes at once, and
    what that costs comes before the next messages. ``rules``: how many the broker evaluates. What
    timers send is a step, too. A processor that has nothing to do sleeps: it is woken for its next
    step.
    """

    def __init__(
        self,
        simulation: Simulation,
        costs: Pricing,
        take: Callable[[Sequence[tuple[Peer, Frames]]], None],
        rules: Callable[[], int],
    ) -> None:
        self.slowness = 1.0
        self.spent_s = 0.0
        """Seconds that it has been asked to work so far."""
        self._simulation = simulation
        self._costs = costs
        self._take = take
        self._rules = rules
        self._free_at = simulation.start
        """When all is done that is asked of the processor so far."""
        self._bill = costs.step()
        self._billed_at = simulation.start
        """When the last step was taken, in which all is sent that is sent at that moment."""
        self._lives = 0
        self._queue: list[tuple[Peer, Frames]] = []
        self._taken = 0
        """How many of these it is busy with."""

    @property
    def waiting(self) -> int:
        """Messages that have arrived and are not taken in yet."""
        return len(self._queue)

    def arrive(self, peer: Peer, frames: Frames) -> None:
        """A message has arrived."""
        self._queue.append((peer, frames))
        if len(self._queue) == 1:
            self._work(self._waking())

    def pay(self, frames: Frames) -> None:
        """A message has been sent."""
        now = self._simulation.now
        if now != self._billed_at:
            self._billed_at, self._bill = now, self._costs.step()
            self._spend(self._waking())
        self._spend(self._bill.sent(frames) * self.slowness)

    def _waking(self) -> float:
        """The seconds that being woken takes."""
        is_asleep = self._free_at <= self._simulation.now
        return self._costs.waking_s * self.slowness if is_asleep else 0.0

    def _spend(self, cost: float) -> None:
        self.spent_s += cost
        self._free_at = max(self._free_at, self._simulation.now) + cost

    def _work(self, cost: float = 0.0) -> None:
        """Begin a step, for which so many seconds are spent already."""
        bill, rules, size = self._costs.step(), self._rules(), 0
        for count, (_, frames) in enumerate(self._queue, 1):
            cost += bill.of(frames, rules) * self.slowness
            size += sum(map(len, frames))
            self._taken = count
            if cost > TOGETHER_S_MAX or count == TOGETHER_MAX or size > TOGETHER_BYTES_MAX:
                break
        self._spend(cost)
        what = self._lives, bill
        self._simulation.after(self._free_at - self._simulation.now, self._finish, what)

    def _finish(self, event: Due) -> None:
        lives, bill = event.what
        if lives != self._lives:
            return  # the broker failed in between
        messages, self._queue = self._queue[: self._taken], self._queue[self._taken :]
        self._billed_at, self._bill = self._simulation.now, bill
        self._take(messages)
        if self._queue:
            self._work()

    def clear(self) -> None:
        """The broker has failed."""
        self._queue.clear()
        self._lives += 1
        self._free_at = self._simulation.now


class Failure(NamedTuple):
    """A broker failed at a moment, in seconds.

    ``lost``: what it had kept of its own sources' events, or None where it keeps all that it knows;
    ``complete``: by the link of each sink, up to where it had been given all composite events
    (TIME_MIN: none, or some waited for credit).
    """

    moment: float
    lost: tuple[EventBatch, ...] | None
    complete: Mapping[Peer, int]


class BrokerHost:
    """One broker, its clients' lanes and its neighbours'.

    ``start`` makes the broker anew: what one that ``crash`` has struck knew is lost. One that was
    stopped by ``stop`` goes on (``resume``) with all that it knew. One that has a ``store`` goes on
    after ``fail``, with ``start``, with what that has kept; after ``set_back``, with what it had
    kept by an earlier time. One that drains stops once nobody needs it; ``come_back`` starts it
    then.
    """

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        make: Callable[[float], Broker],
        costs: Pricing = FREE,
    ) -> None:
        self.name = name
        self.is_running = False
        self.links: dict[Peer, tuple[Lane, int]] = {}
        """By neighbour: the lane to it, and the delay that the overlay is told, in us."""
        self.clients: dict[Peer, Lane] = {}
        """By the client's address: the lane to it."""
        self.starts = 0
        self.warnings: list[tuple[float, Log]] = []
        """Warnings in its log, each with its time in seconds."""
        self.failures: list[Failure] = []
        """The failures at which it had clients, or something that clients had left with it."""
        self.store: SimulatedStore | None = None
        self._simulation = simulation
        self._make = make
        self._on_close: dict[Peer, Callable[[], None]] = {}
        self._gone: tuple[Peer, ...] = ()
        """Its clients when it last failed."""
        self._is_to_come_back = False
        """Whether it starts again as soon as it has drained."""
        self.processor = Processor(simulation, costs, self._take_together, self._count_rules)
        self._is_free = costs is FREE
        self._come = self._take if costs is FREE else self.processor.arrive

    # --- life ---

    def start(self) -> None:
        """Start, or start again."""
        assert not self.is_running
        now = self._simulation.now
        self.is_running, self._is_to_come_back = True, False
        self.starts += 1
        self.broker = self._make(now)
        if self.store is not None:
            self.broker.recall(self.store.read(), now)
            self.store.when_kept = self._stored
        for peer, (_, delay_us) in self.links.items():
            self.broker.add_link(peer, now, delay_us)
        self._drive()

    def crash(self) -> None:
        """Stop without a word, and forget everything."""
        self._fail(forgets=True)

    def stop(self) -> None:
        """Stop without a word, but keep all that is known, as in a store that has every step."""
        self._fail(forgets=False)

    def fail(self) -> None:
        """Stop without a word, and forget all but what the store has kept."""
        assert self.store is not None
        self.store.fail()
        self._fail(forgets=False)

    def set_back(self, older_s: float) -> None:
        """The same, and its store becomes a copy that was made so many seconds ago."""
        assert self.store is not None
        self.store.fail()
        self.store.set_back(self._simulation.now - older_s)
        self._fail(forgets=True)

    def drain(self) -> None:
        """Begin to drain: clients go elsewhere, and it stops once nobody needs it any more."""
        self.failures.append(Failure(self._simulation.now, None, {}))
        self._go_on_draining(self.starts)

    def _go_on_draining(self, life: int) -> None:
        if not self.is_running or life != self.starts:
            return  # it has failed
        obstacles = go_on_draining(self.broker, self._simulation.now)
        self._driver.settle()
        if obstacles:
            self._simulation.after(LOOK_S, lambda due: self._go_on_draining(due.what), life)
            return
        self.broker.close("drained", self._simulation.now)
        self._driver.settle()
        if self.store is not None:
            self.store.close()
        self._end()
        if self._is_to_come_back:
            self.start()

    def come_back(self) -> None:
        """Start again, once it has drained."""
        if self.is_running:
            self._is_to_come_back = True
        else:
            self.start()

    @property
    def drains(self) -> bool:
        """Whether it has begun to drain, and has not stopped."""
        return self.is_running and self.broker.node.draining is not None

    def _stored(self, number: int) -> None:
        self.broker.stored(number, self._simulation.now)
        self._driver.settle()

    def resume(self) -> None:
        """Go on after ``stop``. What was under way meanwhile is lost, and so are clients' links."""
        assert not self.is_running
        self.is_running = True
        for peer in self._gone:
            self.broker.lose(peer, self._simulation.now)
        self._drive()

    def _drive(self) -> None:
        self._driver = Driver(
            self._simulation,
            self.broker,
            self._send,
            self._close,
            note=self._note,
            store=None if self.store is None else self.store.ask,
        )
        self._driver.settle()

    def _note(self, log: Log) -> None:
        if log.level in ("warning", "error"):
            self.warnings.append((self._simulation.now, log))

    def _fail(self, *, forgets: bool) -> None:
        failure = self._failure(forgets)
        if self.clients or failure.lost:
            self.failures.append(failure)
        self._end()

    def _end(self) -> None:
        """Run no more; its clients lose their links."""
        assert self.is_running
        self.is_running = False
        self.processor.clear()
        self._driver.stop()
        self._gone = tuple(self.clients)
        self.clients.clear()
        lost, self._on_close = self._on_close, {}
        for lose in lost.values():
            lose()

    def _failure(self, forgets: bool) -> Failure:
        context = self.broker.context
        kept = tuple(batch for batches in context.detection.replay_buffer for batch in batches)
        complete = {
            sink.peer: TIME_MIN
            if sink.queued or not sink.rules
            else context.detection.complete_to(sink.rules)
            for sink in context.sinks
        }
        return Failure(self._simulation.now, kept if forgets else None, complete)

    # --- what arrives ---

    def connect(self, peer: Peer, lane: Lane, lose: Callable[[], None]) -> None:
        """A client has a fresh link, on which it will say Hello; ``lose``: that link is gone."""
        self.clients[peer] = lane
        self._on_close[peer] = lose

    def lose(self, peer: Peer) -> None:
        """The link of a client breaks, and both ends notice."""
        lose = self._on_close.pop(peer, None)
        if self.is_running and self.clients.pop(peer, None) is not None:
            self.broker.lose(peer, self._simulation.now)
            self._driver.settle()
        if lose is not None:
            lose()

    def arrive(self, peer: Peer, frames: Frames) -> None:
        """Frames of a client or of a neighbour have arrived."""
        if self.is_running and (peer in self.links or peer in self.clients):
            self._come(peer, frames)

    def _take(self, peer: Peer, frames: Frames) -> None:
        self.broker.receive_frames(peer, frames, self._simulation.now)
        self._driver.settle()

    def _take_together(self, messages: Sequence[tuple[Peer, Frames]]) -> None:
        self.broker.receive_together(messages, self._simulation.now)
        self._driver.settle()

    # --- what is sent ---

    def _send(self, peer: Peer, frames: Frames) -> None:
        link = self.links.get(peer)
        lane = self.clients.get(peer) if link is None else link[0]
        if lane is not None:
            lane.send(frames)
            if not self._is_free:
                self.processor.pay(frames)

    def _count_rules(self) -> int:
        return rules_evaluated(self.broker)

    def _close(self, peer: Peer) -> None:
        self.clients.pop(peer, None)
        self._on_close.pop(peer, None)


def join(
    one: BrokerHost, other: BrokerHost, make_lane: LaneMaker, delay_us: int
) -> tuple[Lane, Lane]:
    """Join two brokers that have not started; gives the lanes from each to the other."""
    first, second = one.name.encode(), other.name.encode()
    there = make_lane(f"{one.name}>{other.name}", partial(other.arrive, first))
    back = make_lane(f"{other.name}>{one.name}", partial(one.arrive, second))
    one.links[second] = there, delay_us
    other.links[first] = back, delay_us
    return there, back


class LaneMaker(Protocol):
    """Makes a lane of that name that ends in ``deliver``."""

    def __call__(self, name: str, deliver: Callable[[Frames], None]) -> Lane:
        """Make it."""
        ...


def rules_evaluated(broker: Broker) -> int:
    """How many rules a broker evaluates, in all trees together."""
    return sum(len(evaluator.rules) for evaluator in broker.context.detection.evaluators)
