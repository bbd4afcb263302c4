"""The last ids and what they name, in two generations (matcher.recent)."""

import random

from matcher.recent import RecentIds


def test_what_comes_again_is_known_for_so_many_ids_at_least_and_twice_as_many_at_most():
    rng, recent, said = random.Random(3), RecentIds[int](), dict[str, int]()
    last: list[str] = []
    for _ in range(500):
        ids = [f"e{rng.randint(0, 400)}" for _ in range(rng.randint(1, 9))]
        held = [rng.randint(0, 1) for _ in ids]
        judged = recent.judge(ids, held)
        new = range(len(ids)) if judged.new is None else judged.new
        assert not {ids[place] for place in new} & set(last[-50:])
        conflicts = dict(judged.conflicts)
        for place, one in enumerate(ids):
            if place in new:
                said[one] = held[place]
                last.append(one)
            elif place in conflicts:
                assert said[one] == conflicts[place] != held[place]
            else:
                assert said[one] == held[place]
        recent.remember([ids[one] for one in new], [held[one] for one in new], 50)
        assert len(recent) < 2 * 50 + 9


def test_of_events_that_come_together_the_first_counts():
    judged = RecentIds[int]().judge(["a", "b", "a", "a"], [1, 1, 1, 2])
    assert judged == ([0, 1], [(3, 1)])
