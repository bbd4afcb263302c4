"""Functions of one text: what they make of it, and which patterns are allowed (tesla.md S10)."""

from __future__ import annotations

import functools
import ipaddress
import itertools
import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matcher.model import Value
from rules.patience import PATIENCE
from rules.terms import TextFunction

UNDEFINED = -1
"""In place of a result, among those that kernels read: it is no code, truth, length or number."""
PATTERN_MAX = 200
"""Characters of a pattern."""
SIZE_MAX = 2_000
"""Steps of a pattern with its repetitions written out; a compilation takes some 5 ms then."""
TEXT_MAX = 10_000
"""Characters of a text that a pattern is looked for in; that takes some 25 ms at the most."""
_KEPT, _KEPT_LENGTH = 1_024, 100
"""How many texts a function remembers its results of, and of how many characters each, at most."""

_NUMBER = re.compile(r" *[+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})? *")
_PART = re.compile(
    r"""(?P<class> \[ \^? \]? (?: \[: .*? :\] | \\. | [^\]\\] )* \] )
      | (?P<wide> \\[pPX] (?: \{[^}]*\} | . )? | \. )
      | (?P<quoted> \\Q .*? (?: \\E | \Z ) )
      | (?P<escape> \\x\{[^}]*\} | \\. )
      | (?P<open> \( (?: \? (?: P?<\w+> | [imsU-]+:? | : ) )? )
      | (?P<close> \) )
      | (?P<count> \{ (?P<least>\d+) (?P<comma>,)? (?P<most>\d*) \} )
      | (?P<other> . )""",
    re.VERBOSE | re.DOTALL,
)
_STEPS: Mapping[str, int] = {"wide": 10, "escape": 10, "class": 20, "other": 2}
"""Steps of the parts of a pattern; of a class of Unicode 300 more, being hundreds of ranges."""
_UNICODE_STEPS = 300


def problem_of(pattern: str) -> str | None:
    """Why a text is no pattern that is allowed; None where it is one.

    RE2 takes a time in proportion to the text and to the size of the pattern, written out. So both
    are bounded: a larger pattern is refused, and a longer text is undefined (S9). How long it takes
    for each byte differs by a thousand times, and is measured (:mod:`rules.patience`).
    """
    import pyarrow as pa

    if len(pattern) > PATTERN_MAX:
        return f"a pattern of more than {PATTERN_MAX} characters"
    if size_of(pattern) > SIZE_MAX:
        return f"a pattern of more than {SIZE_MAX} steps, repetitions written out"
    try:
        _found([""], pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None


def size_of(pattern: str) -> int:
    """About how many steps a pattern has, its counted repetitions written out."""
    groups: list[list[int]] = [[]]
    for part in _PART.finditer(pattern):
        kind = part.lastgroup
        parts = groups[-1]
        if part["open"]:
            groups.append([])
        elif part["close"]:
            if len(groups) > 1:
                inner = groups.pop()
                groups[-1].append(2 + sum(inner))
        elif part["count"]:
            times = int(part["most"] or part["least"]) + (1 if part["comma"] else 0)
            if parts:
                parts[-1] = min(2 * SIZE_MAX, parts[-1] * max(1, times))
        elif part["quoted"]:
            parts.append(2 * len(part[0]))
        else:
            wide = len(re.findall(r"\\[pPX]", part[0])) if kind in ("class", "wide") else 0
            parts.append(_STEPS[kind or "other"] + _UNICODE_STEPS * wide)
    return sum(map(sum, groups))


def _number_of(text: str) -> float | None:
    """The float nearest to the number that a text is; None where it is none."""
    found = float(text) if _NUMBER.fullmatch(text) else math.inf
    return found if math.isfinite(found) else None


def is_network(text: str) -> bool:
    """Whether a text is a network of IPv4 or IPv6, ``10.0.0.0/8``, or one address."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _is_in(network: str) -> Callable[[str], bool | None]:
    """Whether a text is an address of a network; None where it is no address."""
    known = ipaddress.ip_network(network)

    def is_in(text: str) -> bool | None:
        try:
            return ipaddress.ip_address(text) in known
        except ValueError:
            return None

    return is_in


_BY_NAME: Mapping[str, Callable[[str], Value | None]] = {
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "number": _number_of,
}


def results_of(function: TextFunction, texts: Sequence[str]) -> list[Value | None]:
    """The results of a function over texts; None where that is undefined.

    Raises TooSlow for a pattern that whoever pays has no time left for (rules.patience).
    """
    if function.network:
        return list(map(_is_in(function.network), texts))
    if function.pattern is None:
        return list(map(_BY_NAME[function.name], texts))
    _arrow()  # its import, of a tenth of a second, is no time of the pattern's
    looked = ["" if len(text) > TEXT_MAX else text for text in texts]
    found = PATIENCE.evaluate(
        function.pattern, looked, functools.partial(_found, pattern=function.pattern)
    )
    if looked == texts:
        return found
    return [
        None if len(text) > TEXT_MAX else is_found
        for text, is_found in zip(texts, found, strict=True)
    ]


def _arrow() -> tuple[Any, Any]:
    """Arrow and its functions, which are imported when a pattern is first used."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa, pc


def _found(texts: Sequence[str], pattern: str) -> list[Value | None]:
    """Whether a pattern is found in each of these texts.

    The array is made of its buffers: ``pa.array`` imports pandas if it is installed, and nobody is
    served for those seconds.
    """
    pa, pc = _arrow()
    encoded = [text.encode() for text in texts]
    ends = array("q", [0, *itertools.accumulate(map(len, encoded))])
    buffers = pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    in_arrow = pa.LargeStringArray.from_buffers(len(encoded), *buffers)
    found: list[Value | None] = pc.match_substring_regex(in_arrow, pattern).to_pylist()
    return found


@functools.lru_cache(maxsize=256)
def result_of(function: TextFunction) -> Callable[[str], Value | None]:
    """The function for one text after another: what it has said of the last ones is remembered."""

    def result(text: str) -> Value | None:
        return results_of(function, [text])[0]

    kept = functools.lru_cache(maxsize=_KEPT)(result)
    return lambda text: kept(text) if len(text) <= _KEPT_LENGTH else result(text)
