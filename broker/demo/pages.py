"""Texts that the demo prints: sentences for composite events, and the page at its end.

Times and days are New York's, as the people there would have told them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime

from broker.demo.account import CAUGHT, Account
from broker.demo.flights import NEW_YORK
from matcher.model import MICROSECONDS, Event

SENTENCES: Mapping[str, str] = {
    "Storm": "{airport}: a storm, {visibility:g} km of sight, wind {wind:.0f} m/s",
    "Snow": "{airport}: {water:.1f} mm of water as snow in six hours",
    "BadHour": "{airport}: in one hour {late} flights very late, {cancelled} cancelled",
    "Disruption": "{airport}: a disruption begins",
    "CityDisrupted": "all three airports are down: {first}, {second}, then {third}",
    "WeatherDisruption": "{airport}: the weather did it, {visibility:g} km of sight",
    "Recovery": "{airport}: recovered, {flights} flights in three hours",
    "KnockOn": "{aircraft} was {before} minutes late, and leaves {origin} {delay} late",
    "Caught": "{carrier} {flight} from {origin} to {destination}: {fate}",
}
"""How an event of each type reads."""
SHOWN_OF_A_TYPE = 3
"""The first events of each type are printed, as they come, and no more."""
WORST_DAYS = 3
FURTHER_DAYS = 9

NEXT = """\
Where to look next:
  docs/tutorial.md        walks through this demo
  examples/flights.tesla  the rules, written to be read
  docs/tesla.md           the whole language
  rexmq demo --record flights && rexmq detect --rules examples/flights.tesla --events \
flights/*.parquet
                          the same composite events from recorded files"""


def sentence(event: Event) -> str:
    """A composite event in one line."""
    words = SENTENCES.get(event.type)
    said = words.format(**event.data) if words else str(dict(event.data))
    when = datetime.fromtimestamp(event.time / MICROSECONDS, NEW_YORK)
    return f"{day_text(when)} {when:%H:%M}  {event.type:<18}{said}"


class FirstOnes:
    """Chooses what is printed while events come: the first of each type."""

    def __init__(self) -> None:
        self._shown: Counter[str] = Counter()

    def takes(self, event: Event) -> bool:
        """Whether this one is still to be shown."""
        self._shown[event.type] += 1
        return self._shown[event.type] <= SHOWN_OF_A_TYPE


def summary(account: Account) -> str:
    """The page at the end of a run."""
    return "\n".join([*_figures(account), "", *_days(account), "", NEXT])


def day_text(day: date) -> str:
    """``8 Feb``, as wide as ``28 Feb``."""
    return f"{day.day:>2} {day:%b}"


def _figures(account: Account) -> Iterator[str]:
    rate = account.published / account.seconds if account.seconds else 0.0
    yield (
        f"{account.published:,} events in {account.seconds:.1f} s, {rate:,.0f} a second; "
        f"{account.detected:,} composite events:"
    )
    for name in account.types:
        yield f"  {name:<18}{account.counts[name]:>7,}"
    if account.detected:
        median, most = (account.latency_s(share) * 1000 for share in (0.5, 0.99))
        yield (
            f"Latency at full speed, queues included: p50 {median:.0f} ms, p99 {most:.0f} ms, "
            "from the last\nevent that a detection had to wait for to the subscriber."
        )


def _days(account: Account) -> Iterator[str]:
    worst = account.worst_days(WORST_DAYS + FURTHER_DAYS)
    if not worst:
        yield "No flight was caught in a bad patch: calm days."
        return
    yield "The most affected days, by flights caught in bad hours (cancelled, or two hours late):"
    for day, counts in worst[:WORST_DAYS]:
        yield f"  {day_text(day)}  {_day(counts)}"
    if further := worst[WORST_DAYS:]:
        yield f"  then {', '.join(day_text(day).strip() for day, _ in further)}"


def _day(counts: Counter[str]) -> str:
    said = [f"{counts[CAUGHT]} flights caught"]
    said += [f"{counts['BadHour']} bad hours"]
    said += ["all three airports down"] if counts["CityDisrupted"] else []
    said += ["snow"] if counts["Snow"] else []
    said += ["a storm"] if counts["Storm"] else []
    return ", ".join(said)
