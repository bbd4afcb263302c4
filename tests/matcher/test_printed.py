"""Columns of printed ids say what the ids themselves say, one by one."""

from random import Random

import numpy as np

from matcher.formats.printed import printed_causes, printed_ids
from matcher.model import Causes, EventIds, StringColumn

SOURCES = ["s", "é#1", ""]


def random_ids(random: Random, count: int, *, texts: bool, digests: bool) -> EventIds:
    words = [random.getrandbits(64) >> random.choice((0, 60, 64)) for _ in range(2 * count)]
    return EventIds(
        StringColumn.from_strings(random.choices(SOURCES, k=count)),
        np.array([random.randint(-(2**63), 2**63 - 1) for _ in range(count)], np.int64),
        StringColumn.from_strings([random.choice(("", "a", "é\0", "-1")) for _ in range(count)])
        if texts
        else None,
        np.array(words, np.uint64).reshape(count, 2) if digests else None,
    )


def test_ids_are_printed_as_they_are_one_by_one() -> None:
    for seed in range(60):
        random = Random(seed)
        count = random.choice((0, 1, 20))
        ids = random_ids(random, count, texts=seed % 3 == 1, digests=seed % 3 == 2)
        assert printed_ids(ids).to_pylist() == ids.printed(), f"seed {seed}"


def test_causes_are_printed_as_they_are_one_by_one() -> None:
    for seed in range(120):
        random = Random(seed)
        sizes = [random.choice((0, 1, 1, 3)) for _ in range(random.choice((0, 1, 12)))]
        count = sum(sizes)
        ids = random_ids(random, count, texts=random.random() < 0.6, digests=random.random() < 0.6)
        forms = [random.choice("ntd") for _ in range(count)]
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        causes = Causes(
            offsets,
            ids,
            np.array([form == "d" for form in forms], np.bool_),
            np.array([form == "t" for form in forms], np.bool_),
        )
        if random.random() < 0.5 and sizes:  # not from the first on
            first = random.randrange(len(sizes))
            causes = Causes(offsets[first:], ids, causes.is_digest, causes.has_text)
        for full in (False, True):
            found = printed_causes(causes, full=full).to_pylist()
            assert found == causes.printed_rows(full=full), f"seed {seed}"
            rows = range(len(found))
            one_by_one = causes.printed_full if full else causes.printed
            assert found == [one_by_one(place) for place in rows], f"seed {seed}"
