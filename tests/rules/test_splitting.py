"""Pieces of a recording, cut as ``rules.cutting.splitting`` says, give what the whole gives.

Random rules, half of them made to have keys, run over random histories that are cut at random
into 1 to 16 pieces in every way that is allowed; the oracle runs over the whole.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from agreement import row
from cases import Case, random_case
from cut_cases import Cut, cut_case, found_in_whole, identity
from iteration_cases import iteration_case
from rule_texts import SCHEMAS
from timeline import batches

import rules
from matcher.model import TIME_MAX, Event, EventBatch, EventIds, EventType, StringColumn
from rules.cutting.splitting import ByKey, ByTime, Pass, Whole, split
from rules.engine import make

CASES, FIRST = int(os.environ.get("REXMQ_CASES", "24")), int(os.environ.get("REXMQ_SEED", "0"))
MARKER = EventType.of("Marker")
"""A type that no rule uses: it tells an engine where its input begins and ends (S13)."""


# --- the plain way to do it --------------------------------------------------------------------


def marker(time: int) -> EventBatch:
    ids = EventIds(StringColumn.constant("marker", 1), np.array([time]))
    return EventBatch(MARKER, np.array([time]), ids, ())


def found_in(part: Pass, events: Sequence[Event], least: int, greatest: int) -> Iterator[Event]:
    """What the rules that a pass owns find in a piece."""
    engine = make("cdp")
    engine.deploy(part.rules)
    for time in (least, greatest):
        engine.push(marker(time))
    for batch in batches(events, SCHEMAS.values()):
        engine.push(batch)
    for event in engine.advance(TIME_MAX).events():
        if event.source.removeprefix("rexmq/rule/") in part.owned:
            yield event


def found_by_parts(cut: Cut, passes: Sequence[Pass], random: Random) -> list[Event]:
    least = min(event.time for event in cut.events)
    greatest = max(event.time for event in cut.events)
    found: list[Event] = []
    for part in passes:
        events = [event for event in cut.events if event.type in part.used_types]
        match part.way:
            case Whole():
                found += found_in(part, events, least, greatest)
            case ByKey():
                numbers: dict[object, int] = {}
                pieces: list[list[Event]] = [[] for _ in range(cut.parts)]
                for event in events:
                    place = part.way.place(event.type)
                    key = tuple(event.data.values())[place]
                    piece = numbers.setdefault(key, random.randrange(cut.parts))
                    pieces[piece].append(event)
                for piece in pieces:
                    found += found_in(part, piece, least, greatest)
            case ByTime(reach):
                times = sorted({event.time for event in cut.events})
                bounds = sorted(random.choices([*times, times[0] + 1], k=cut.parts - 1))
                bounds = [least, *bounds, greatest + 1]
                for start, end in itertools.pairwise(bounds):
                    near = [event for event in events if start - reach <= event.time < end]
                    if start < end:
                        ends = max(least, start - reach), end - 1
                        found += (e for e in found_in(part, near, *ends) if e.time >= start)
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case_of", [random_case, iteration_case])
def test_pieces_give_what_the_whole_gives(case_of: Callable[[int], Case]):
    fired: dict[type, int] = {ByKey: 0, ByTime: 0, Whole: 0}
    for seed in range(FIRST, FIRST + CASES):
        cut = cut_case(seed, case_of)
        splitting = split(cut.ruleset, cut.ways)
        whole = sorted(found_in_whole(cut), key=identity)
        parts = sorted(found_by_parts(cut, splitting.passes, Random(seed)), key=identity)
        assert [*map(row, parts)] == [*map(row, whole)], (
            f"seed {seed}, {cut.parts} parts\n{splitting}\n"
            + "\n\n".join(rule.text for rule in cut.ruleset.rules)
            + f"\n{[*map(row, parts)]}\nagainst\n{[*map(row, whole)]}"
        )
        sources = {event.source for event in whole}
        for verdict in splitting.verdicts:
            fired[type(verdict.way)] += f"rexmq/rule/{verdict.rule}" in sources
    assert min(fired.values()) > CASES // 20, fired


# --- what is found out about rules -------------------------------------------------------------

DECLARED = """
event Temp(area: string, value: float, room: int)
event Smoke(area: string)
event Gate(site: string, open: bool)
"""


def told(text: str, **options: Any) -> list[str]:
    return list(map(str, split(rules.load(DECLARED + text), **options).verdicts))


def test_equalities_over_all_events_make_a_key():
    assert told("""
        rule fire: define Fire(area) from Smoke(area = $a)
            and last Temp(area = $a, value > 45) within 5 min from Smoke
            and not Gate(site = $a) between Temp and Smoke
            and 3 < Count(Temp(area = $a) within 1 h from Smoke) where area = $a
    """) == ["fire: by key, Gate.site = Smoke.area = Temp.area"]


def test_one_event_without_the_key_is_enough_for_slices_of_time():
    assert told("""
        rule fire: define Fire(area) from Smoke(area = $a)
            and each Temp(area = $a) within 5 min from Smoke
            and not Gate() within 10 min from Temp where area = $a
    """) == [
        "fire: by time, in slices that overlap by 900 s "
        "(the events of fire are not all bound to one value)"
    ]


def test_a_choice_made_before_the_key_is_compared_has_none():
    """``last`` has chosen among all areas when the constraint comes; ``each`` chooses nothing."""
    texts = [
        f"""define Fire(area) from Smoke(area = $a) and {policy} Temp() within 5 min from Smoke
            and Temp.area = $a where area = $a"""
        for policy in ("last", "each")
    ]
    ways = [split(rules.load(DECLARED + text)).passes[0].way for text in texts]
    assert isinstance(ways[0], ByTime)
    assert isinstance(ways[1], ByKey)


def test_all_candidates_of_one_choice_need_the_key():
    """The last of either type is meant, so the one without the key may be the very last."""
    either = "define Fire(area) from Smoke(area = $a) and last {} within 1 min from Smoke"
    texts = [
        either.format(f"Temp(area = $a) or {other} as e") + " where area = $a"
        for other in ("Gate(site = $a)", "Gate(open = true)")
    ]
    ways = [split(rules.load(DECLARED + text)).passes[0].way for text in texts]
    assert isinstance(ways[0], ByKey)
    assert isinstance(ways[1], ByTime)


HIERARCHY = """
    rule hot: define Hot(place) from Temp(area = $a, value > 45)
        and not Temp(area = $a, value > 45) within 10 min from Temp where place = $a
    rule fire: define Fire(area) from Smoke(area = $a)
        and last Hot(place = $a) within 5 min from Smoke where area = $a
"""


def test_reach_and_key_go_through_hierarchies():
    assert told(HIERARCHY) == [
        "hot: by key, Temp.area",
        "fire: by key, Hot.place = Smoke.area = Temp.area",
    ]
    assert told(HIERARCHY, ways=("time",)) == [
        "hot: by time, in slices that overlap by 600 s",
        "fire: by time, in slices that overlap by 900 s",
    ]


def test_a_composite_event_that_does_not_bear_the_key_passes_none_on():
    texts = told(HIERARCHY.replace("where place = $a", 'where place = "all"'))
    assert texts[0].startswith("hot: by key")
    assert texts[1].startswith("fire: by time, in slices that overlap by 900 s")


def test_consumption_and_recursion_without_a_key_stay_whole_and_say_why():
    text = """
        rule once: define Once(n: int) from Smoke() and each Temp() within 1 min from Smoke
            where n = Temp.room consuming Temp
        rule above: define Above(n: int) from Once() as o where n = o.n
        rule run: define Run(n: int) from Temp() and last Run() within 1 min from Temp
            where n = Run.n + 1
    """
    unbound = "for {} and the events of {} are not all bound to one value"
    assert told(text) == [
        "once: in one piece, " + unbound.format("it consumes events", "once"),
        "above: in one piece, " + unbound.format("once, below it, consumes events", "once"),
        "run: in one piece, " + unbound.format("it depends on itself", "run"),
    ]


def test_rules_with_one_key_share_a_pass_and_bring_what_is_below_them():
    splitting = split(
        rules.load(
            DECLARED
            + HIERARCHY
            + """
            rule rooms: define Rooms(room) from Temp(room = $r) as Now
                and last Temp(room = $r) as Before within 1 h from Now where room = $r
            rule any: define Any(place) from Hot() and last Smoke() within 1 min from Hot
                where place = Hot.place
            """
        )
    )
    passes = [
        (sorted(one.owned), [rule.name for rule in one.rules.rules], type(one.way))
        for one in splitting.passes
    ]
    assert passes == [
        (["fire", "hot"], ["hot", "fire"], ByKey),
        (["rooms"], ["rooms"], ByKey),
        (["any"], ["hot", "any"], ByTime),
    ]


def test_an_attribute_that_is_asked_for_must_be_a_key_of_every_rule():
    assert told(HIERARCHY.replace("place", "area"), attribute="area")[0] == "hot: by key, Temp.area"
    with pytest.raises(ValueError, match="room is no key of rule hot"):
        told(HIERARCHY, attribute="room")


def test_a_way_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'size' is no way to cut events"):
        told(HIERARCHY, ways=("size",))
