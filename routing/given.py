"""Events that a durable sink has given to a client, as far as this has dealt with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from routing.delivery.remainder import event_numbers, left_of
from routing.messages import Delivery
from routing.number_set import NumberRun, NumberSet
from routing.runs import runs

GAPS_MAX = 4_096
"""Of a sink that clients share: what one of them has had has gaps."""


class Given:
    """The numbers of these events; the lowest are forgotten where there are too many gaps.

    A number that comes, not again, and has come before is another sink's of the same name, which
    was made since; of the one before nothing is known then. billing had Fires 1 to 6 and was
    removed while its client was away: Fire 1 of the next billing is new, and to be acknowledged.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._had = NumberSet(runs_max=GAPS_MAX)
        self._dealt_with = NumberSet(runs_max=GAPS_MAX)
        self._open: deque[NumberRun] = deque()
        """In the order in which they came, those that are not all dealt with."""

    def take(self, delivery: Delivery) -> tuple[Delivery | None, Iterable[NumberRun]]:
        """Take a delivery: gives its new events (None for none), and the numbers that are to be
        told again: what is dealt with and comes again was not heard of, for the link broke. What
        comes again on another link is left out as far as the client has had it: Fires 4 to 6 came,
        5 was given back, and the link broke: of 4 to 8, which come again, it gives 5, 7 and 8.
        """
        first, last = delivery.number - len(delivery) + 1, delivery.number
        left: Delivery | None = delivery
        unheard: Iterable[NumberRun] = ()
        if delivery.again:
            left = left_of(delivery, self._had.lacks(event_numbers(delivery)))
            unheard = tuple(self._dealt_with.within(first, last))
        elif self._had.missing(first, last) < len(delivery):
            self._begin()
        self._had.add(first, last)
        if left is delivery:
            self._open.append((first, last))
        elif left is not None:
            self._open += runs(event_numbers(left), len(left))
        return left, unheard

    def deal_with_all(self, number: int) -> Iterable[NumberRun]:
        """All up to an event is dealt with, in the order in which events were given; gives the
        numbers, if it is open. Fire 6 was given, then 4 and 5, which another client had had: all up
        to 6 is 6 alone, all up to 4 is 6 and 4.
        """
        runs, is_in = self._open, (one[0] <= number <= max(one) for one in self._open)
        place = next((place for place, found in enumerate(is_in) if found), None)
        if place is None:
            return ()
        done = NumberSet(runs.popleft() for _ in range(place))
        first, last = runs.popleft()
        if number < last:
            runs.appendleft((number + 1, last))
        done.add(first, min(number, last))
        for run in done:
            self._dealt_with.add(*run)
        self._let_go()
        return done

    def deal_with(self, number: int) -> bool:
        """An event is dealt with; False where it is not open."""
        is_open = any(first <= number <= last for first, last in reversed(self._open))
        if not is_open or not self._dealt_with.add(number, number):
            return False
        self._let_go()
        return True

    def give_back(self, number: int) -> bool:
        """An event is given back; False where it is not open."""
        is_in = (first <= number <= last for first, last in self._open)
        place = next((place for place, found in enumerate(is_in) if found), None)
        if place is None or self._dealt_with.has_all(number, number):
            return False
        first, last = self._open[place]
        del self._open[place]
        # Its place stays, as a run of no number: all up to it may still be dealt with at once.
        for run in ((number + 1, last), (number, number - 1), (first, number - 1)):
            if run[0] <= run[1] or run[0] == number:
                self._open.insert(place, run)
        self._had.discard(number, number)
        return True

    def _let_go(self) -> None:
        while self._open and self._dealt_with.has_all(*self._open[0]):
            self._open.popleft()
