"""The patterns that OpenCEP's data set lists matches of, as TESLA rules.

Its patterns have one window for a whole match, so each earlier event has a window from the event
after it, which puts them in sequence, and one from the terminator; one pattern is of events in
any order. The data set has no licence and
lies outside the repository; without it these tests are skipped.
"""

import ast
from datetime import UTC, datetime
from pathlib import Path

import pytest
from engines import OF_MEANING, make
from timeline import batches

import rules
from matcher.model import MICROSECONDS, TIME_MAX, Event

FOLDER = Path(__file__).parents[2].parent / "shared" / "conformance" / "opencep"
TICKS = FOLDER / "events" / "NASDAQ_RECON_200802011119.txt"

pytestmark = pytest.mark.skipif(
    not TICKS.exists(), reason="the OpenCEP data set is not beside the repository (../shared)"
)

TICKERS = ("AAPL", "AMZN", "CBRL", "DRIV", "GOOG", "MSFT", "ORLY")
SCHEMAS = "\n".join(
    f"event {ticker}(open: float, high: float, low: float, close: float, volume: int)"
    for ticker in TICKERS
)

PATTERNS = {
    "one": "AAPL(open > 135) as a",
    "googleAscend": """GOOG() as c
        and each GOOG(high < c.high) as b within 3 min from c
        and each GOOG(high < b.high) as a within 3 min from b
        and a within 3 min from c""",
    "googleIncrease": """GOOG(high = $h) as b
        and each GOOG($h >= 1.01 * high) as a within 30 min from b""",
    "msftDrivRace": """MSFT() as e
        and each DRIV(high < e.high) as d within 10 min from e
        and each MSFT(high < d.high) as c within 10 min from d
        and c within 10 min from e
        and each DRIV(high < c.high) as b within 10 min from c
        and b within 10 min from e
        and each MSFT(high < b.high) as a within 10 min from b
        and a within 10 min from e""",
    "frequencyTailored1": """CBRL() as c
        and each MSFT(open > c.open) as b within 360 min from c
        and each DRIV(open > b.open) as a within 360 min from b
        and a within 360 min from c""",
    "hierarchy": """all AMZN() as a, AAPL(high > a.high) as b, GOOG(high > b.high) as c
        within 1 min""",
}
COUNTS = {
    "one": 72,
    "googleAscend": 83,
    "googleIncrease": 125,
    "msftDrivRace": 10,
    "frequencyTailored1": 818,
    "hierarchy": 953,
}


def ticks() -> list[Event]:
    """The data set's events; the id of each is its ticker and minute."""
    events = []
    for line, text in enumerate(TICKS.read_text().splitlines(), start=1):
        ticker, minute, opening, high, low, close, volume = text.split(",")
        time = datetime.strptime(minute, "%Y%m%d%H%M").replace(tzinfo=UTC)
        data = {
            "open": float(opening),
            "high": float(high),
            "low": float(low),
            "close": float(close),
            "volume": int(volume),
        }
        microseconds = int(time.timestamp()) * MICROSECONDS
        events.append(Event(ticker, microseconds, "nasdaq", f"{ticker}/{minute}", data, line))
    return events


def listed(name: str) -> list[list[str]]:
    """The listed matches, each the sorted ids of its events."""
    text = (FOLDER / "expected" / f"{name}Matches.txt").read_text()
    matches = []
    for block in text.strip().split("\n\n"):
        rows = [ast.literal_eval(line) for line in block.strip().splitlines()]
        matches.append(sorted(f"{row['Stock Ticker']}/{row['Date']}" for row in rows))
    return sorted(matches)


CASES = [
    (engine, name)
    for engine in (*OF_MEANING, "hybrid")
    for name in PATTERNS
    if engine != "hybrid" or name not in ("one", "hierarchy")  # which are no chains
]


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_exactly_the_listed_matches(engine: str, name: str):
    ruleset = rules.load(f"{SCHEMAS}\ndefine Match() from {PATTERNS[name]}")
    detector = make(engine)
    detector.deploy(ruleset)
    for batch in batches(ticks(), ruleset.schemas.values()):
        detector.push(batch)
    found = sorted(sorted(event.cause) for event in detector.advance(TIME_MAX).events())
    assert len(found) == COUNTS[name]
    assert found == listed(name)
