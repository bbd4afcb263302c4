"""What parts of a source publish is taken once, whoever publishes it (routing.serving.parts)."""

from random import Random

import numpy as np

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing.config import NodeConfig
from routing.serving.parts import Parts, numbers_of, part_name, whole_of

TEMP = EventType.of("Temp", value="float")


def batch(texts, part="f#part-0"):
    count = len(texts)
    ids = EventIds(
        StringColumn.constant(part, count), np.arange(count), StringColumn.from_strings(texts)
    )
    return EventBatch(TEMP, np.arange(count), ids, (np.arange(count) / 2,))


def test_the_name_of_a_part_names_the_whole():
    assert whole_of(part_name("a#b", 12)) == "a#b"
    assert whole_of(part_name("a", None)) == "a"
    assert [whole_of(name) for name in ("a", "a#1", "#part-1", "a#part-", "a#part-x")] == [None] * 5


def test_every_event_is_taken_once_however_parts_share_and_repeat_them():
    """Against a plain set, within the window in which repeats are known."""
    for seed in range(50):
        random = Random(seed)
        parts, seen = Parts(NodeConfig(repeat_ids_max=200)), set()
        for _ in range(20):
            texts = [f"e{random.randint(0, 150)}" for _ in range(random.randint(0, 12))]
            expected = [text for text in dict.fromkeys(texts) if text not in seen]
            seen.update(texts)
            cut = random.randint(0, len(texts))
            sent = [batch(some) for some in (texts[:cut], texts[cut:]) if some]
            taken = parts.joined("f", parts.unseen("f", sent))
            assert [one for part in taken for one in part.ids.printed()] == expected, f"seed {seed}"


def test_the_window_of_ids_has_a_bound():
    parts = Parts(NodeConfig(repeat_ids_max=10))
    for first in range(0, 100, 5):
        parts.joined("f", [batch([f"e{number}" for number in range(first, first + 5)])])
    recent = parts.unseen("f", [batch(["e90", "e99", "e0"])])
    (taken,) = parts.joined("f", recent)
    assert taken.ids.printed() == ["e0"]
    assert taken.ids.source.tolist() == ["f"]


def test_places_are_numbers_where_ids_are_and_depend_on_the_id_alone():
    assert numbers_of(["7", "12", "-3"]).tolist() == [7, 12, -3]
    for texts in (
        ["0", "00"],
        ["1", "", "12"],
        ["١"],
        ["9" * 19],
        ["9" * 18, "0", "10", "9"],
        ["-"],
    ):
        apart = [int(numbers_of([text])[0]) for text in texts]
        assert numbers_of(texts).tolist() == apart, texts
    assert numbers_of(["0", "10", "99", "9" * 18]).tolist() == [0, 10, 99, 10**18 - 1]
    mixed = ["007", "7", "seven", "a" * 40, "", "é", "1" * 30]
    together = dict(zip(mixed, numbers_of(mixed).tolist(), strict=True))
    assert together["7"] == 7
    assert {text: int(numbers_of([text])[0]) for text in mixed} == together
    assert len(set(together.values())) == len(mixed)
