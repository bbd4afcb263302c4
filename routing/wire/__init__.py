"""Messages as bytes (docs/protocol.md): what is true on every link, the simulated ones included.

A message is one frame, or two when it bears events; a packet between brokers is one frame before
those of the message in it. The first frame is four bytes (:mod:`codec`) and a msgpack array of the
message's fields in their order; the second holds the columns of all its batches.
"""

from routing.wire.codec import BATCHES_MAX, MAGIC
from routing.wire.frames import (
    CODECS,
    FRAME_MAX,
    decode,
    decode_kept,
    encode,
    is_gathered,
    looks_like,
)

__all__ = [
    "BATCHES_MAX",
    "CODECS",
    "FRAME_MAX",
    "MAGIC",
    "decode",
    "decode_kept",
    "encode",
    "is_gathered",
    "looks_like",
]
