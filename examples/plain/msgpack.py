"""msgpack, as far as RexMQ's messages need it: nil, bool, int, float, str, bin, array, map."""

import struct
from typing import Any


def pack(value: Any) -> bytes:
    """The bytes of a value."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if 0 <= value < 128:
            return bytes([value])
        return (
            struct.pack(">Bq", 0xD3, value) if value < 1 << 63 else struct.pack(">BQ", 0xCF, value)
        )
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, str):
        encoded = value.encode()
        return struct.pack(">BI", 0xDB, len(encoded)) + encoded
    if isinstance(value, bytes):
        return struct.pack(">BI", 0xC6, len(value)) + value
    return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))


def unpack(packed: bytes) -> Any:
    """The value of some bytes, all of them."""
    value, end = _unpack(packed, 0)
    if end != len(packed):
        raise ValueError(f"{len(packed) - end} bytes too many")
    return value


_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
_NUMBERS |= {0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_LENGTHS = {
    0xC4: 1,
    0xC5: 2,
    0xC6: 4,
    0xD9: 1,
    0xDA: 2,
    0xDB: 4,
    0xDC: 2,
    0xDD: 4,
    0xDE: 2,
    0xDF: 4,
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _unpack(packed: bytes, at: int) -> tuple[Any, int]:
    first, at = packed[at], at + 1
    if first < 0x80 or first >= 0xE0:
        return first - 256 * (first >= 0xE0), at
    if first < 0x90:
        return _items(packed, at, 0xDF, first & 15)
    if first < 0xA0:
        return _items(packed, at, 0xDD, first & 15)
    if first < 0xC0:
        return _items(packed, at, 0xDB, first & 31)
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    if first in _NUMBERS:
        (value,) = struct.unpack_from(_NUMBERS[first], packed, at)
        return value, at + struct.calcsize(_NUMBERS[first])
    width = _LENGTHS[first]
    return _items(packed, at + width, first, int.from_bytes(packed[at : at + width], "big"))


def _items(packed: bytes, at: int, kind: int, count: int) -> tuple[Any, int]:
    if kind <= 0xC6:
        return packed[at : at + count], at + count
    if kind <= 0xDB:
        return packed[at : at + count].decode(), at + count
    values = []
    for _ in range(2 * count if kind >= 0xDE else count):
        value, at = _unpack(packed, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if kind >= 0xDE else values), at
