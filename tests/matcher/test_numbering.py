"""Numbers and places are those of one dictionary, however many there are (filters.numbering)."""

from collections import Counter
from random import Random

import pytest

from matcher.filters import numbering
from matcher.filters.numbering import Numbering, Places


@pytest.mark.parametrize("together", [numbering.TOGETHER_MAX, 100])
def test_places_are_a_dictionary(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "TOGETHER_MAX", together)
    seed = 5
    random, places, expected = Random(seed), Places(), dict[int, int]()
    for place in range(3_000):
        identifier = random.choice([random.randrange(-500, 500), random.randrange(2**62)])
        if identifier in expected:
            assert places[identifier] == expected[identifier]
            if random.random() < 0.5:
                assert places.pop(identifier) == expected.pop(identifier)
        elif place % 100 == 0:
            several = {10**9 + 10 * place + more: more for more in range(10)}
            places.add_all(list(several), several.values())
            expected |= several
        else:
            places.add(identifier, place)
            expected[identifier] = place
        assert len(places) == len(expected)
    assert sorted(places) == sorted(expected.values())
    assert all(identifier in places for identifier in expected)
    assert 10**18 + 1 not in places
    with pytest.raises(KeyError):
        places.pop(10**18 + 1)


def test_words_are_spread_when_they_become_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "TOGETHER_MAX", 3)
    seed = 6
    random, words, uses = Random(seed), Numbering[str](), Counter[str]()
    numbers: dict[str, int] = {}
    for _ in range(2_000):
        word = f"w{random.randrange(12)}"
        if random.random() < 0.5:
            number, new = words.use(word)
            assert new == (uses[word] == 0), seed
            assert numbers.setdefault(word, number) == number
            uses[word] += 1
        elif uses[word]:
            uses[word] -= 1
            assert words.release(numbers[word]) == (None if uses[word] else word)
            if not uses[word]:
                del numbers[word]
        assert sorted(words) == sorted(numbers)
        assert all(words.number(one) == numbers.get(one) for one in uses)
        assert len(words) <= 12
