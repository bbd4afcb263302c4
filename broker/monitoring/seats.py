"""Seats: by what whoever is let in sees the broker and changes its rules."""

from __future__ import annotations

from dataclasses import dataclass

from broker.monitoring.board import Board
from broker.monitoring.changes import Changes
from broker.monitoring.entry import OPERATOR
from broker.monitoring.looks import Looks, looks_at_network
from broker.monitoring.settings import Settings
from broker.monitoring.tap import Tap


@dataclass(frozen=True, slots=True)
class Seat:
    """One user's connections; ``user`` is OPERATOR for who may do all."""

    user: str
    looks: Looks
    board: Board
    tap: Tap
    changes: Changes
    log: str = ""
    """The folder of the broker's store, for who may read all of its log; "" for others."""


class Seats:
    """The seats at the broker of these settings.

    A seat has connections of its own, under keys that the broker has made for that user, so it is
    the broker that decides: a rule that alice deploys from the page is hers, and events that she
    may not subscribe to are not shown to her. Whoever has the token of the pages, or needs none,
    has a seat that may do all. A seat is made when it is first asked for.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seats: dict[str, Seat] = {}

    def of(self, user: str) -> Seat:
        """The seat of a user. KeyError for one that may not sign in."""
        seat = self._seats.get(user)
        if seat is None:
            seat = self._seats[user] = self._made(user)
        return seat

    def has(self, user: str) -> bool:
        """Whether there is a seat for a user."""
        return any(one.name == user for one in self._settings.users)

    def _made(self, user: str) -> Seat:
        settings = self._settings
        address = settings.address if user == OPERATOR else settings.address_of(user)
        looks = Looks(address)
        board = Board(looks, looks_at_network(address))
        log = settings.data or "" if user == OPERATOR else ""
        return Seat(user, looks, board, Tap(address, user), Changes(address), log)

    async def close(self) -> None:
        """Hang up."""
        for seat in self._seats.values():
            await seat.tap.close()
            await seat.looks.close()
            await seat.board.close()
