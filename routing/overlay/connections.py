"""The link that carries each neighbour's channel: links come and go, neighbours come back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from routing.effects import Peer
from routing.errors import ProtocolError
from routing.messages import LINK_VERSION, Code, LinkHello
from routing.names import is_printable
from routing.overlay.channel import Channel
from routing.overlay.config import FORGET_S, OverlayConfig

LINKS_MAX = 4
"""Links that one neighbour has made to this broker and that are listened to, the last ones."""


class Connections:
    """The links, and the channels that they carry. ``now`` is in seconds.

    A channel belongs to a neighbour, by its name. Whichever link brings the neighbour's greeting
    carries the channel from then on, so whoever comes back on another link goes on where it was,
    and two brokers that have both made a link to one another have one channel all the same.
    """

    def __init__(self, config: OverlayConfig) -> None:
        self._config = config
        self._channels: dict[Peer, Channel] = {}
        self.by_link: Mapping[Peer, Channel] = self._channels
        """The channel that each link carries."""
        self._told: set[Peer] = set()
        self.told: Collection[Peer] = self._told
        """The links that this broker was told of: they stay, others go when they are lost."""
        self._named: dict[str, Channel] = {}
        """By neighbour, whether it is up or not."""
        self._incarnation = config.incarnation
        self.touched: list[Channel] = []
        """As ``take_touched`` would give, but each as often as something has happened to it."""

    @property
    def channels(self) -> list[Channel]:
        """All channels, each once."""
        return list(dict.fromkeys([*self._channels.values(), *self._named.values()]))

    def take_touched(self) -> list[Channel]:
        """The channels that something has happened to besides the one that was given."""
        touched, self.touched = self.touched, []
        return list(dict.fromkeys(touched))

    # --- links ---

    def add(self, peer: Peer, now: float) -> Channel:
        """Greet whoever is at ``peer``."""
        assert peer not in self._told, "that link is there already"
        self._told.add(peer)
        channel = self._channels.get(peer)
        if channel is None:
            channel = self._channels[peer] = Channel(peer, self._config, now, self._incarnation)
        return channel

    def lose(self, peer: Peer, now: float, reason: str = "the link broke") -> None:
        """A link is not there any more; one that this broker was told of may be found again."""
        channel = self._channels.get(peer)
        if channel is None:
            return
        if peer not in self._told:
            del self._channels[peer]
        if channel.peer == peer:
            channel.lose(now, reason)
            self.touched.append(channel)
            if peer not in self._told:
                channel.move(self._spare(channel))

    def _spare(self, channel: Channel) -> Peer | None:
        """Another link to a channel's neighbour: one that it may be greeted on, if there is."""
        peers = [peer for peer, one in self._channels.items() if one is channel]
        return next((peer for peer in peers if peer in self._told), peers[-1] if peers else None)

    # --- greetings ---

    def greet(self, peer: Peer, hello: LinkHello, now: float) -> Channel:
        """Somebody greets on a link; gives the channel that it carries from now on.

        Raises ProtocolError for whom this broker cannot be linked to.

        A name is one broker's. Whoever greets with that of a neighbour that is up, but in another
        incarnation, is refused: it is another broker, or the neighbour has restarted, and may come
        back once its former incarnation has been silent for long enough.
        """
        self._check(hello)
        channel = self._named.get(hello.name)
        here = self._channels.get(peer)
        if channel is None:
            channel = here if here is not None and not here.neighbour else self._open(peer, now)
            self._named[hello.name] = channel
        elif (
            channel is not here
            and channel.is_up
            and hello.incarnation != channel.neighbours_incarnation
        ):
            reason = f"a broker named {hello.name!r} is linked already"
            raise ProtocolError(Code.NAME_TAKEN, reason)
        if here is not None and here is not channel:
            self._leave(here, peer, now)
        self._channels[peer] = channel
        if channel.peer != peer:
            channel.move(peer)
            self._forget_oldest(channel)
        return channel

    def _check(self, hello: LinkHello) -> None:
        """Raise ProtocolError for a neighbour that may not be one."""
        config = self._config
        if hello.version != LINK_VERSION:
            reason = f"protocol version {hello.version}, but this is version {LINK_VERSION}"
            raise ProtocolError(Code.VERSION, reason)
        if not hello.name or not is_printable(hello.name):
            raise ProtocolError(Code.BAD_NAME, f"a broker cannot be named {hello.name!r}")
        if hello.name == config.name:
            raise ProtocolError(Code.NAME_TAKEN, f"this broker is named {hello.name!r} itself")
        if hello.terms != config.terms:
            if not config.terms:
                start = f"start it with --strategy {hello.terms.partition(',')[0]}"
                reason = f"broker {config.name!r} works alone: to be linked to, {start}"
                raise ProtocolError(Code.TERMS, reason)
            reason = f"broker {hello.name!r} has {hello.terms!r}, but {config.name!r} has "
            differ = ("forget_s" in hello.terms) != ("forget_s" in config.terms)
            unsaid = f" (a forget_s of {FORGET_S:g} s goes without saying)" if differ else ""
            raise ProtocolError(Code.TERMS, f"{reason}{config.terms!r}{unsaid}")

    def _open(self, peer: Peer, now: float) -> Channel:
        self._make_room()
        return Channel(peer, self._config, now, self._incarnation)

    def _make_room(self) -> None:
        """For one neighbour more: one that has no link is given up for it."""
        neighbours_max = self._config.neighbours_max
        if len(self._named) < neighbours_max:
            return
        gone = next((one for one in self._named.values() if one.peer is None), None)
        if gone is None:
            reason = f"more than {neighbours_max} neighbours (neighbours_max)"
            raise ProtocolError(Code.LIMIT, reason)
        self._give_up(gone)

    def _leave(self, channel: Channel, peer: Peer, now: float) -> None:
        """A link turns out to lead to another neighbour than a channel's."""
        del self._channels[peer]
        if channel.peer == peer:
            channel.lose(now, "another broker answers there")
            channel.move(self._spare(channel))
        self.touched.append(channel)

    def _forget_oldest(self, channel: Channel) -> None:
        """A neighbour may have forgotten the links that it made before."""
        made = [
            one for one, of in self._channels.items() if of is channel and one not in self._told
        ]
        for peer in made[:-LINKS_MAX]:
            del self._channels[peer]

    def _give_up(self, channel: Channel) -> None:
        """Give a channel up, with what it kept: whatever follows it here begins in a later
        incarnation.
        """
        if self._named.get(channel.neighbour) is channel:
            del self._named[channel.neighbour]
        self._incarnation = max(self._incarnation, channel.incarnation + 1)
