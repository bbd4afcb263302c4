"""Blocks come back from fewer bytes as they were, to the bit and with their types."""

from random import Random

import numpy as np
import pyarrow as pa

from broker.spark.columns import from_bytes, to_bytes
from broker.spark.narrowing import narrowed, widened

EXTREMES = (-(2**63), 2**63 - 1, -(2**62), 0, -1, 1)


def integers(random: Random, count: int) -> pa.Array:
    """Ints near each other, steadily growing, constant, or of any size."""
    start, bits = random.randint(-(2**61), 2**61), random.choice((1, 3, 8, 9, 16, 31, 32, 33, 62))
    match random.randrange(4):
        case 0:
            values = [start + random.getrandbits(bits) for _ in range(count)]
        case 1:
            steps = [random.getrandbits(bits) % 2**50 for _ in range(count)]
            values = np.cumsum([start, *steps])[1:].tolist()
        case 2:
            values = [start] * count
        case _:
            values = [random.choice(EXTREMES) for _ in range(count)]
    if random.random() < 0.2:
        values[random.randrange(count)] = None
    return pa.array(values, pa.int64())


def texts(random: Random, count: int) -> pa.Array:
    kinds = random.choice((1, 2, 256, 257, 70_000))
    values = [random.choice((f"t{random.randrange(kinds)}", "")) for _ in range(count)]
    if random.random() < 0.2:
        values[random.randrange(count)] = None
    return pa.array(values).dictionary_encode()


def test_what_was_narrowed_is_widened_to_what_it_was():
    random, fewer = Random(11), 0
    for _ in range(300):
        count = random.choice((1, 2, 3, 50, 400))
        rows = pa.record_batch(
            {
                "i": integers(random, count),
                "t": texts(random, count),
                "f": pa.array([random.random() for _ in range(count)]),
                "b": pa.array([random.random() < 0.5 for _ in range(count)]),
            }
        )
        small = from_bytes(to_bytes(narrowed(rows), compresses=False))
        back = widened(small)
        back.validate(full=True)
        assert back.equals(rows)
        assert back.schema.types == rows.schema.types
        fewer += small.nbytes < rows.nbytes
    assert fewer > 200


def test_times_and_numbers_in_order_and_few_texts_take_a_third_of_the_bytes():
    count = 10_000
    rows = pa.record_batch(
        {
            "time": pa.array(np.arange(count) * 400_000 + 10**15 + np.arange(count) % 7),
            "sequence": pa.array(np.arange(count) * 4 + 10**9),
            "source": pa.array(["gate"] * count).dictionary_encode(),
            "area": pa.array([f"a{n % 200}" for n in range(count)]).dictionary_encode(),
        }
    )
    assert narrowed(rows).nbytes < rows.nbytes / 3
