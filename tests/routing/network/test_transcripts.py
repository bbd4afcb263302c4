"""Protocols between brokers as stories: commands, and what brokers say to one another because of
them (testdata/*.txt).

A network of a few brokers runs in simulated time; everything is real but sockets and the clock.
After each command a second passes, in which what it has begun comes to its end; ``meanwhile``
leaves that to the next command. A transcript has, in the order of arrival:

    gate -> office, plant  Plan           a message between brokers (tests/message_words.py)
    desk gets Fire@12(1)                  a delivery to a client, or an answer
    +3 s                                  whole seconds since the command was given

``quietly`` leaves a command's transcript out. Left out everywhere are signs of life,
acknowledgements, packets that have come before, and the kinds of messages that ``network`` lists as
``untold``.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import datadriven
import pytest
from conversation import batches_of, events_of, schema_of
from datadriven import Case
from message_words import UNTOLD, counted, event_words, told
from worlds import HEARTBEAT_S, Simulated

from matcher.model import MICROSECONDS
from routing import wire
from routing.config import SessionConfig
from routing.messages import Confirmed, Delivery, Message, Packet, Refused, Remove
from routing.overlay.config import FORGET_S
from routing.session import Result, Session
from simulator.lanes import Frames, Lane, Quality

DELAY_S = 0.01
"""What every message takes from broker to broker, so that things can happen in between."""
MEANWHILE = "meanwhile"
"""Behind a command: no time passes before the next one."""
QUIETLY = "quietly"
"""Behind a command: what it makes brokers say is told in another story."""
STORIES = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


class Story(Simulated):
    """A network, and the lines of its transcript since they were last taken."""

    def __init__(
        self,
        strategy: str,
        links: list[tuple[str, str]],
        folder: Path,
        untold: Collection[str],
        forget_s: float,
    ) -> None:
        self._lines: list[tuple[str, list[str], str]] = []
        """Sender, receivers and words; no sender for lines that are not messages."""
        self._instant = self._second = 0.0
        self._seen: set[tuple[str, int, int]] = set()
        self._began = 0.0
        self._fresh = 0
        self._numbers: dict[tuple[str, str], int] = {}
        """Subscriptions, by sink and filter."""
        self._slow_sinks: set[str] = set()
        self._untold = untold
        self.forget_s = forget_s
        super().__init__(strategy, links, folder)

    # --- the transcript ---

    def take_lines(self) -> list[str]:
        """The lines since they were last taken."""
        taken, self._lines = self._lines, []
        self._fresh = 0
        return list(
            counted(
                f"{sender} -> {', '.join(to)}  {text}" if sender else text
                for sender, to, text in taken
            )
        )

    def note(self, text: str, sender: str = "", receiver: str = "") -> None:
        """Write a line, or add to one of the same instant that says the same."""
        now = self.now()
        if (second := int(now - self._began)) > self._second:
            self._second = second
            self._lines.append(("", [], f"+{second} s"))
        if now > self._instant:
            self._instant, self._fresh = now, len(self._lines)
        for other, to, said in self._lines[self._fresh :]:
            if sender and other == sender and said == text and receiver not in to:
                to.append(receiver)
                return
        self._lines.append((sender, [receiver], text))

    def _lane(self, name: str, deliver: Callable[[Frames], None]) -> Lane:
        sender, receiver = name.split(">")

        def arrive(frames: Frames) -> None:
            message = wire.decode(frames)
            if isinstance(message, Packet):
                key = name, message.tag, message.sequence
                is_repeat, message = key in self._seen, message.message
                self._seen.add(key)
            else:
                is_repeat = False
            if not (is_repeat or self._is_untold(message)):
                self.note(told(message), sender, receiver)
            deliver(frames)

        return Lane(self.simulation, name, Quality(DELAY_S), arrive)

    def _is_untold(self, message: Message) -> bool:
        return isinstance(message, UNTOLD) or type(message).__name__ in self._untold

    def take(self, name: str, result: Result) -> None:
        """A client is answered, or is delivered events."""
        if isinstance(result, Delivery):
            if name not in self._slow_sinks:
                self.sessions[name].consume(len(result))
            for event, _ in events_of(result):
                self.note(f"{name} gets {event_words(event)}")
        elif isinstance(result, Confirmed):
            self.note(f"{name} is confirmed")
        elif isinstance(result, Refused):
            self.note(f"{name} is refused: {result.reason}")

    # --- commands ---

    def perform(self, case: Case) -> str:
        """A command; gives what came of it within a second, or what it asks for."""
        self._began, self._second = self.now(), 0
        words = [word for word in case.arguments if word not in ("at", MEANWHILE, QUIETLY)]
        lines = COMMANDS[case.command](self, words, case.body)
        if lines is None:
            self.run(0.0 if MEANWHILE in case.arguments else 1.0)
            lines = self.take_lines()
        return "" if QUIETLY in case.arguments else "\n".join(lines)

    def _client(self, name: str, broker: str, config: SessionConfig) -> Session:
        if name not in self.clients:
            self.connect(name, broker, config)
        return self.sessions[name]

    def _source(self, words: list[str], body: str) -> None:
        """source NAME at BROKER, and its types."""
        name, broker = words
        types = [schema_of(line) for line in body.splitlines()]
        self.schemas.update((one.name, one) for one in types)
        self._client(name, broker, SessionConfig(name, 1, HEARTBEAT_S)).advertise(types)

    def _publish(self, words: list[str], body: str) -> None:
        """publish SOURCE, and events; it promises that nothing follows for a second after them."""
        batches = batches_of(body, self.schemas)
        promise = max(int(batch.time.max()) for batch in batches) + MICROSECONDS
        self.sessions[words[0]].publish(batches, self.now(), promise)

    def _flood(self, words: list[str], body: str) -> None:
        """flood SOURCE COUNT, and an event that is published so often."""
        self._publish(words[:1], " ".join([body] * int(words[1])))

    def _subscribe(self, words: list[str], body: str) -> None:
        """subscribe SINK at BROKER, and a filter."""
        name, broker = words
        session = self._client(name, broker, SessionConfig("", 1, HEARTBEAT_S))
        self._numbers[name, body] = session.subscribe(body)[1]

    def _slow(self, words: list[str], body: str) -> None:
        """slow SINK at BROKER, and a filter: two events may be on their way and two may wait at its
        broker, and it takes none of them by itself.
        """
        name, broker = words
        self._slow_sinks.add(name)
        self._client(name, broker, SessionConfig("", 1, HEARTBEAT_S, delivery_credit=2)).subscribe(
            body, limit=2
        )

    def _take(self, words: list[str], body: str) -> None:
        """take SINK COUNT: a slow sink takes so many events, and grants credit for more."""
        self.sessions[words[0]].consume(int(words[1]))

    def _unsubscribe(self, words: list[str], body: str) -> None:
        """unsubscribe SINK, and a filter."""
        self.sessions[words[0]].unsubscribe(self._numbers.pop((words[0], body)))

    def _deploy(self, words: list[str], body: str) -> None:
        """deploy at BROKER, and a rule, which takes the place of one of its name."""
        self._manager(words[-1]).deploy(body, True)

    def _remove(self, words: list[str], body: str) -> None:
        """remove RULE at BROKER."""
        self._manager(words[-1]).ask(Remove, words[0])

    def _manager(self, broker: str) -> Session:
        return self._client(f"the manager at {broker}", broker, SessionConfig("", 1, HEARTBEAT_S))

    def _leave(self, words: list[str], body: str) -> None:
        """leave CLIENT: it says Goodbye."""
        self.close(words[0])

    def _lose(self, words: list[str], body: str) -> None:
        """lose CLIENT: its link to its broker breaks, and it does not come back there."""
        self.clients.pop(words[0]).set_in_reach(False)

    def _crash(self, words: list[str], body: str) -> None:
        """crash BROKER: it stops without a word, and forgets everything."""
        self.crash(words[0])

    def _return(self, words: list[str], body: str) -> None:
        """return BROKER: it is started anew."""
        self.restart(words[0])

    def _cut(self, words: list[str], body: str) -> None:
        """cut BROKER BROKER: nothing passes between them."""
        self._set_cut(words, True)

    def _mend(self, words: list[str], body: str) -> None:
        """mend BROKER BROKER"""
        self._set_cut(words, False)

    def _set_cut(self, ends: list[str], is_cut: bool) -> None:
        for link, lanes in self.lanes.items():
            if {*link} == {*ends}:
                for lane in lanes:
                    lane.is_cut = is_cut

    def _wait(self, words: list[str], body: str) -> list[str]:
        """wait SECONDS"""
        self.run(float(words[0]))
        return self.take_lines()

    def _tree(self, words: list[str], body: str) -> list[str]:
        """tree: the single tree, by each broker's father."""
        fathers = {name: self.status(name)["network"]["father"] for name in self._running}
        return [
            f"{name} has the father {father}" if father else f"{name} is the root"
            for name, father in fathers.items()
        ]

    def _rules(self, words: list[str], body: str) -> list[str]:
        """rules: where they are evaluated."""
        evaluated = {name: self.status(name)["evaluates"] for name in self._running}
        return [f"{name} evaluates {', '.join(own)}" for name, own in evaluated.items() if own]

    @property
    def _running(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.is_running]


COMMANDS: Mapping[str, Callable[[Story, list[str], str], list[str] | None]] = {
    "source": Story._source,
    "publish": Story._publish,
    "flood": Story._flood,
    "subscribe": Story._subscribe,
    "slow": Story._slow,
    "take": Story._take,
    "unsubscribe": Story._unsubscribe,
    "deploy": Story._deploy,
    "remove": Story._remove,
    "leave": Story._leave,
    "lose": Story._lose,
    "crash": Story._crash,
    "return": Story._return,
    "cut": Story._cut,
    "mend": Story._mend,
    "wait": Story._wait,
    "tree": Story._tree,
    "rules": Story._rules,
}


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_between_brokers(path: Path, tmp_path: Path, rewrite: bool) -> None:
    stories: list[Story] = []

    def perform(case: Case) -> str:
        """network STRATEGY [untold=KIND,...] [forget_s=S], and its links; all other commands are
        told to it.
        """
        if case.command != "network":
            return stories[0].perform(case)
        links = [(line.split()[0], line.split()[-1]) for line in case.body.splitlines()]
        untold = case.options.get("untold", "").split(",")
        forget_s = float(case.options.get("forget_s", FORGET_S))
        stories.append(Story(case.arguments[0], links, tmp_path, untold, forget_s))
        stories[0].run(1.0)
        lines = stories[0].take_lines()
        return "" if QUIETLY in case.arguments else "\n".join(lines)

    datadriven.run(path, perform, rewrite=rewrite)
