"""Names that an access file binds to users are found at once, be there many patterns."""

from random import Random

import pytest

from matcher.model import EventType
from routing.messages import Rights, rights as rights_module
from routing.serving.users import UserRights

TEMP = EventType.of("Temp", n="int")


def users(*sources: tuple[str, ...] | None) -> dict[str, Rights]:
    return {f"u{place}": Rights(f"u{place}", (), sources=one) for place, one in enumerate(sources)}


@pytest.mark.parametrize("seed", range(20))
def test_a_name_is_bound_that_any_pattern_names(seed: int) -> None:
    random = Random(seed)

    def drawn(letters: str) -> str:
        return "".join(random.choice(letters) for _ in range(random.randint(1, 4)))

    patterns = [drawn("ab*") for _ in range(12)]
    found, told = UserRights(), users(tuple(patterns[:6]), None, (), tuple(patterns[6:]))
    found.change(told)
    for _ in range(200):
        name = drawn("ab")
        assert found.binds(name) == any(one.names(name) for one in told.values()), patterns


def test_a_name_is_compared_with_few_of_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    found, compared = UserRights(), list[str]()
    found.change(users(*((f"u{n}-*", f"*-door-{n}", f"cam-{n}-*-x") for n in range(500))))
    is_named = rights_module.is_named

    def counted(pattern: str, name: str) -> bool:
        compared.append(pattern)
        return is_named(pattern, name)

    monkeypatch.setattr("routing.serving.users.is_named", counted)
    assert not any(found.binds(f"w{n}-door") for n in range(100))
    assert not compared
    assert found.binds("cam-7-a-x")
    assert found.binds("a-door-7")
    assert len(compared) < 10
