"""Small files of the kinds that people have, with the options by which each is read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from dataclasses import dataclass

from matcher.spelling import spelled


def zipped(**members: str) -> bytes:
    """An archive of these files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    return packed.getvalue()


@dataclass(frozen=True)
class FileKind:
    """A file, the options that say what is in it, and a filter with what it finds: the times and
    the values of one attribute.
    """

    name: str
    content: str | bytes
    options: tuple[str, ...]
    found: str
    times: tuple[str, ...]
    attribute: str
    values: tuple[object, ...]

    @property
    def type(self) -> str:
        """The type of the events."""
        return self.found.partition("(")[0]

    @property
    def rules(self) -> str:
        """A rule that finds the events of the filter."""
        it = f"{self.type}.{spelled(self.attribute)}"
        return f"define Found(it) from {self.found} where it = {it}\n"

    @property
    def as_bytes(self) -> bytes:
        """The content."""
        return self.content.encode() if isinstance(self.content, str) else self.content


def _utc(*times: str) -> tuple[str, ...]:
    return tuple(f"{time}Z" for time in times)


KINDS = [
    FileKind(
        "hourly.csv",
        "day,temp\n2010/01/01 00:00,39.4\n2010/01/01 01:00,31\n2010/01/01 02:00,39.5\n",
        ("--type", "Hour", "--time-column", "day", "--time-zone", "UTC"),
        "Hour(temp > 39)",
        _utc("2010-01-01T00:00:00", "2010-01-01T02:00:00"),
        "temp",
        (39.4, 39.5),
    ),
    FileKind(
        "daily.csv",
        "date,wind,weather\n2012-01-01,4,rain\n2012-01-02,4.5,snow\n",
        ("--type", "Day", "--time-column", "date", "--time-zone", "Europe/Rome"),
        'Day(weather = "snow")',
        _utc("2012-01-01T23:00:00"),
        "wind",
        (4.5,),
    ),
    FileKind(
        "prices.csv",
        "symbol,date,price\nA,Jan 1 2000,39.81\nB,Feb 1 2000,68.87\nB,Mar 1 2000,1.5\n",
        ("--type", "P", "--time-column", "date", "--time-format", "%b %d %Y", "--time-zone", "UTC"),
        "P(price > 2)",
        _utc("2000-01-01T00:00:00", "2000-02-01T00:00:00"),
        "symbol",
        ("A", "B"),
    ),
    FileKind(
        "people.csv",
        "name,age,type,date\nAnn,40,visit,1992-04-30\nBen,,visit,1992-04-30\n"
        "Cid,18,call,1992-05-01\nDon,,call,1992-05-02\n",
        ("--type", "Seen", "--time-column", "date", "--time-zone", "UTC"),
        'Seen(type = "call")',
        _utc("1992-05-01T00:00:00", "1992-05-02T00:00:00"),
        "age",
        (18, None),
    ),
    FileKind(
        "plants.csv",
        "year,source,made\n2001-01-01,coal,35361\n2001-01-01,wind,1437\n2002-01-01,wind,1963\n",
        ("--type", "Made", "--time-column", "year", "--source-column", "", "--time-zone", "UTC"),
        "Made(made < 2000)",
        _utc("2001-01-01T00:00:00", "2002-01-01T00:00:00"),
        "source",
        ("wind", "wind"),
    ),
    FileKind(
        "bars.json",
        '[\n {\n  "date": "2009-06-01",\n  "open": 31.5,\n  "signal": null\n },\n'
        ' {"date": "2009-06-02", "open": 33, "signal": "long"}]\n',
        ("--type", "Bar", "--time-column", "date", "--flat", "--time-zone", "UTC"),
        "Bar(open > 32)",
        _utc("2009-06-02T00:00:00"),
        "signal",
        ("long",),
    ),
    FileKind(
        "weather.csv",
        "origin,temp,wind,time_hour\nEWR,39,NA,2013-01-01T06:00:00Z\n"
        "EWR,39.02,21.86,2013-01-01T07:00:00Z\n",
        ("--type", "W", "--time-column", "time_hour", "--null", "NA"),
        "W(temp > 39.01 and wind is not null)",
        _utc("2013-01-01T07:00:00"),
        "temp",
        (39.02,),
    ),
    FileKind(
        "flights.csv.zip",
        zipped(flights_csv="carrier,delay,at\nUA,2,2013-01-01T00:00:00Z\nAA,NA,1356998401\n"),
        ("--type", "F", "--time-column", "at", "--null", "NA"),
        "F(delay is null)",
        _utc("2013-01-01T00:00:01"),
        "carrier",
        ("AA",),
    ),
    FileKind(
        "flat.ndjson",
        '{"origin": "EWR", "temp": 39.0, "at": 1357020000000}\n'
        '{"origin": "JFK", "temp": 41.0, "at": 1357027200000}\n',
        ("--type", "W", "--time-column", "at", "--time-unit", "ms", "--flat"),
        "W(temp > 40.0)",
        _utc("2013-01-01T08:00:00"),
        "origin",
        ("JFK",),
    ),
    FileKind(
        "nozone.csv",
        "time,area,value\n2013-03-10 01:30:00,a,1.0\n2013-03-10 03:30:00,a,9.0\n",
        ("--type", "T", "--time-zone", "America/New_York"),
        "T(value >= 1.0)",
        _utc("2013-03-10T06:30:00", "2013-03-10T07:30:00"),
        "value",
        (1.0, 9.0),
    ),
    FileKind(
        "glucose.csv.gz",
        gzip.compress(b"datetime,glucose\n2010-03-24 09:51:00,258\n2010-03-24 09:56:00,260\n"),
        ("--type", "G", "--time-column", "datetime", "--time-zone", "+02:00"),
        "G(glucose > 259)",
        _utc("2010-03-24T07:56:00"),
        "glucose",
        (260,),
    ),
    FileKind(
        "signs.csv",
        "Time (UTC),Sea Temp (C),from,Station-Id\n2016-02-15T00:00:00Z,4.929,north,44098\n",
        ("--type", "Sea", "--time-column", "Time (UTC)"),
        'Sea(`from` = "north" and `Station-Id` = 44098)',
        _utc("2016-02-15T00:00:00"),
        "Sea Temp (C)",
        (4.929,),
    ),
    FileKind(
        "headings.csv",
        "Time (UTC),Sea Temp (C),from,Station-Id\n2016-02-15T00:00:00Z,4.929,north,44098\n",
        (
            *("--type", "Sea", "--time-column", "Time (UTC)"),
            *("--columns", 'temp="Sea Temp (C)",side=from,station=Station-Id'),
        ),
        'Sea(side = "north" and station = 44098)',
        _utc("2016-02-15T00:00:00"),
        "temp",
        (4.929,),
    ),
    FileKind(
        "pages.TSV",
        "time\tarea\tvalue\n1\ta\t9.5\n2\tb\t1.5\n",
        ("--type", "Page"),
        "Page(value > 2)",
        _utc("1970-01-01T00:00:01"),
        "area",
        ("a",),
    ),
    FileKind(
        "mixed.csv",
        "kind,time,room,value,level\nTemp,1,a,9.5,\nSmoke,2,a,,3\nTemp,3,b,1.5,\nSmoke,4,b,,7\n",
        ("--type-column", "kind"),
        "Smoke(level > 5)",
        _utc("1970-01-01T00:00:04"),
        "room",
        ("b",),
    ),
    FileKind(
        "energie.csv.xz",
        lzma.compress(
            "Zähler 17\n# kWh, Ablesung\nDatum;Zeit;kWh\n01.06.2024;10:00;1,5\n"
            "# Ausfall\n01.06.2024;10:15;12,75\n".encode()
        ),
        (
            *(
                "--type",
                "E",
                "--time-column",
                "Zeit",
                "--date-column",
                "Datum",
                "--skip-lines",
                "1",
            ),
            *("--comment", "#", "--decimal", ",", "--time-zone", "Europe/Berlin"),
            *("--time-format", "%d.%m.%Y %H:%M"),
        ),
        "E(kWh > 2.0)",
        _utc("2024-06-01T08:15:00"),
        "kWh",
        (12.75,),
    ),
    FileKind(
        "bars.csv.bz2",
        bz2.compress(b"time^open\n2024-06-01T10:00:00+02^7\n"),
        ("--type", "Bar", "--delimiter", "^"),
        "Bar(open = 7)",
        _utc("2024-06-01T08:00:00"),
        "open",
        (7,),
    ),
    FileKind(
        "tabs.csv",
        "time\tnote\n2024-06-01 10:00:00,5 UTC\ta|b\n",
        ("--type", "Note", "--delimiter", "tab"),
        'Note(note = "a|b")',
        _utc("2024-06-01T10:00:00.500000"),
        "note",
        ("a|b",),
    ),
    FileKind(
        "answer.json",
        '{"status": "ok",\n "result": {"items": [\n  {"at": 1, "c": {"temp": 20.5}},\n'
        '  {"at": 2, "c": {"temp": 31.5}}\n ]}}\n',
        (
            *("--records", "result.items", "--flat", "--type", "Temp", "--time-column", "at"),
            *("--columns", "value=.c.temp"),
        ),
        "Temp(value > 30.0)",
        _utc("1970-01-01T00:00:02"),
        "value",
        (31.5,),
    ),
    FileKind(
        "cloud.jsonl",
        '{"time": 5, "subject": "o-17", "data": {"price": {"eur": 9.5}}}\n',
        ("--type", "Order", "--columns", "order=.subject,price=.data.price.eur"),
        "Order(price > 9.0)",
        _utc("1970-01-01T00:00:05"),
        "order",
        ("o-17",),
    ),
]
"""One of each kind."""
