"""Every choice that an Overlay leaves to its host, with units, validated once."""

from __future__ import annotations

from dataclasses import dataclass

FORGET_S = 300.0
"""Seconds out of reach after which a broker is forgotten, unless the network chooses otherwise."""


@dataclass(frozen=True, slots=True)
class OverlayConfig:
    """A broker's choices about its links to others. ValueError names one that makes no sense."""

    name: str
    """The broker's name: the only one of it in the network."""
    incarnation: int = 1
    """Grows with each start of this broker: its starting time, in microseconds."""
    terms: str = ""
    """Settings that all brokers of a network must share, such as its strategy; others are refused.
    "" for a broker that works alone.
    """
    heartbeat_s: float = 1.0
    """Something is sent to every neighbour at least this often, in seconds."""
    heartbeats_missed_max: int = 3
    """A link is down after that many of the neighbour's heartbeat intervals in silence."""
    greeting_s: float = 0.5
    """Seconds after which a neighbour that has not answered is greeted again."""
    resend_s: float = 1.0
    """Seconds after which what is not acknowledged is sent again, where acknowledgements take no
    longer than that (retransmission); doubled each time."""
    resend_s_max: float = 30.0
    """The longest that ``resend_s`` is doubled to."""
    acknowledge_s: float = 0.2
    """Seconds for which an acknowledgement waits for something to travel with: less than
    ``resend_s``, by more than a message takes there and back."""
    window_max: int = 1_024
    """Packets under way on one link, and packets kept that came before their turn."""
    buffer_max: int = 16_384
    """Messages for one neighbour that wait or are not acknowledged; beyond it the link starts
    anew, as if this broker had forgotten it."""
    flood_s: float = 0.01
    """Seconds for which link states wait for others to travel with."""
    settle_s: float = 0.5
    """Seconds from the first news of the network until centre and trees are looked at again."""
    link_delay_us: int = 1_000
    """Measured delays of links are rounded up to multiples of it, in microseconds, so that chance
    does not choose the centre."""
    forget_s: float = FORGET_S
    """Seconds out of reach after which a broker is forgotten. Neighbours notice one another's
    absence at different times: it is to be at least ``least_forget_s``."""
    neighbours_max: int = 256
    """Links at a time."""
    nodes_max: int = 10_000
    """Brokers of the network that are remembered."""

    @property
    def estranged_s(self) -> float:
        """Seconds out of reach after which others may have forgotten this broker: they may have
        missed it a little earlier than it missed them.
        """
        return max(self.forget_s - self.margin_s, self.forget_s / 2)

    @property
    def least_forget_s(self) -> float:
        """The least ``forget_s`` of which one can say who may have forgotten whom."""
        return 2 * self.margin_s

    @property
    def forgets_too_soon(self) -> bool:
        """Whether ``forget_s`` was chosen, and is less than that."""
        return self.forget_s != FORGET_S and self.forget_s < self.least_forget_s

    @property
    def margin_s(self) -> float:
        """Seconds by which others may have missed this broker before it missed them, at most."""
        return 2 * self.heartbeat_s * self.heartbeats_missed_max + self.settle_s

    def __post_init__(self) -> None:
        _require(bool(self.name), "name must not be empty")
        _require(
            0 < self.incarnation < 2**62,
            f"incarnation must be positive and fit in 62 bits: {self.incarnation}",
        )
        for name in _SECONDS:
            _require(getattr(self, name) > 0, f"{name} must be positive")
        for name in _COUNTS:
            _require(getattr(self, name) >= 1, f"{name} must be at least 1")
        _require(
            self.buffer_max >= self.window_max,
            f"buffer_max ({self.buffer_max}) must hold a window ({self.window_max})",
        )
        _require(
            self.acknowledge_s < self.resend_s,
            f"acknowledge_s ({self.acknowledge_s:g}) must be less than resend_s"
            f" ({self.resend_s:g}), or everything is sent twice",
        )


_SECONDS = (
    "heartbeat_s",
    "greeting_s",
    "resend_s",
    "resend_s_max",
    "acknowledge_s",
    "flood_s",
    "settle_s",
    "forget_s",
)
_COUNTS = (
    "heartbeats_missed_max",
    "window_max",
    "buffer_max",
    "link_delay_us",
    "neighbours_max",
    "nodes_max",
)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
