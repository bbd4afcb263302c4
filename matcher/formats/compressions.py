"""The compressions of files of events: their endings, first bytes, readers and writers."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

COMPRESSIONS: Mapping[str, str] = {
    ".gz": "gzip",
    ".zst": "zstd",
    ".bz2": "bz2",
    ".xz": "xz",
    ".zip": "zip",
}
_MARKS: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
}


def compression_of(start: bytes) -> str | None:
    """The compression that a file's first bytes say."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)


def unpacked(stack: ExitStack, stream: Any, compression: str, *, peeks: bool) -> Any:
    """The bytes of a stream of a ``compression``, which ``stack`` closes.

    With ``peeks`` a reader can look at them in advance.
    """
    if compression == "xz":
        import lzma  # which a Python may lack

        return stack.enter_context(lzma.open(stream))
    import pyarrow as pa

    stream = stack.enter_context(pa.CompressedInputStream(stream, compression))
    return io.BufferedReader(stream) if peeks else stream


@contextmanager
def packed(sink: BinaryIO, compression: str) -> Iterator[BinaryIO]:
    """A stream whose bytes go to ``sink``, compressed."""
    if compression == "xz":
        import lzma

        with lzma.open(sink, "wb") as stream:
            yield cast("BinaryIO", stream)
        return
    import pyarrow as pa

    with pa.CompressedOutputStream(sink, compression) as stream:
        yield stream
