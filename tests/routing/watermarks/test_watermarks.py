"""Marks of types by what is said of them, whoever says it (routing.watermarks.watermarks)."""

from routing.watermarks.ends import CLOSED
from routing.watermarks.watermarks import Watermarks
from rules.pattern import TIMER

FIRE = {"fire": frozenset({"Temp", "Smoke"})}


class At:
    """The watermarks of a broker, with what its sources say."""

    def __init__(
        self, uses: dict[str, frozenset[str]], *published: str, over: frozenset[str] = frozenset()
    ) -> None:
        self.said: dict[str, int] = {}
        self.watermarks = Watermarks()
        defining = {rule.title(): [rule] for rule in uses}
        timed = {rule: used for rule, used in uses.items() if TIMER.name in used}
        together = [(*used, rule.title()) for rule, used in uses.items()]
        self.watermarks.arrange(uses, defining, timed, together, over)
        self.watermarks.inputs.arrange(frozenset(published), {})

    def say(self, clock: int | None = None, **marks: int) -> dict[str, int]:
        """Sources say this; gives the marks of types that have moved."""
        self.said = {**self.said, **marks}
        self.watermarks.inputs.hear_own(self.said)
        moved = self.watermarks.inputs.hear()
        self.watermarks.look_beyond(moved, is_anew=False)
        found = self.watermarks.engine_marks(moved, clock)
        self.watermarks.end(moved, is_timed=clock is not None)
        return found

    def reach(self, **fronts: int) -> None:
        for name, front in fronts.items():
            self.watermarks.reach(self.watermarks.type_records[name], front)


def test_a_closed_type_is_where_those_are_that_it_is_used_with() -> None:
    at = At(FIRE, "Temp", "Smoke")
    assert at.say(Temp=30, Smoke=20) == {"Temp": 30, "Smoke": 20}
    assert at.say(Temp=CLOSED, Smoke=50) == {"Temp": 50, "Smoke": 50}
    assert at.say(Smoke=60) == {"Temp": 60, "Smoke": 60}


def test_types_that_have_all_closed_are_just_beyond_their_last_event() -> None:
    at = At(FIRE, "Temp", "Smoke")
    at.reach(Temp=29, Smoke=55)
    assert at.say(Temp=CLOSED, Smoke=CLOSED) == {"Temp": 56, "Smoke": 56}
    assert at.watermarks.ended_rules == {"fire"}


def test_what_has_nothing_to_do_with_a_closed_type_moves_it_no_further() -> None:
    at = At({**FIRE, "gale": frozenset({"Wind"})}, "Temp", "Smoke", "Wind")
    at.say(Temp=CLOSED, Smoke=20, Wind=10)
    assert at.say(Wind=90) == {"Wind": 90}


def test_a_type_that_nobody_has_published_is_given_nothing() -> None:
    at = At(FIRE, "Temp")
    assert at.say(Temp=30, Smoke=40) == {"Temp": 30}


def test_timer_goes_by_the_clock_or_by_what_is_needed_beside_it() -> None:
    tick = {"tick": frozenset({TIMER.name, "Temp"})}
    assert At(tick, "Temp").say(70, Temp=30) == {"Temp": 30, TIMER.name: 70}
    assert At(tick, "Temp").say(Temp=30) == {"Temp": 30, TIMER.name: 30}
    assert At(tick, "Temp").say(70, Temp=CLOSED) == {"Temp": 70, TIMER.name: 70}


def test_a_type_of_rules_that_are_over_goes_on_with_the_others() -> None:
    bell = {"fire": frozenset({"Smoke"}), "bell": frozenset({"Fire", "Temp"})}
    at = At(bell, "Temp", "Smoke")
    assert "Fire" not in at.say(Temp=30, Smoke=20)
    assert at.watermarks.note_over(frozenset({"fire"}))
    assert at.say(Temp=40)["Fire"] == 40
