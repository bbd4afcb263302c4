"""Strings as numbers: exact, readable by kernels, forgotten when nothing uses them."""

import random

import pytest

from rules.engine.linking import interner
from rules.engine.linking.interner import Interner, Texts
from rules.terms import TextFunction
from rules.texts import TEXT_MAX

TEXTS = ["", "a", "ab", "\u00e9", "e\u0301", "\U0001f600", "x" * 5000]


def read(strings: Interner, code: int) -> str:
    """A string as kernels see it."""
    begin, end = strings.extents[2 * code : 2 * code + 2]
    return bytes(strings.data[begin:end]).decode()


def test_equal_codes_are_equal_strings():
    strings = Interner()
    codes = strings.codes(TEXTS)
    assert len(set(codes.tolist())) == len(TEXTS)
    assert strings.codes(TEXTS).tolist() == codes.tolist()
    assert [strings.text(code) for code in codes] == TEXTS
    assert [read(strings, code) for code in codes] == TEXTS


def test_codes_that_nothing_uses_are_given_to_others():
    strings = Interner()
    kept, gone = strings.code("kept"), strings.code("gone")
    strings.forget([kept])
    assert len(strings) == 1
    assert strings.code("new") == gone
    assert (strings.text(kept), read(strings, kept), read(strings, gone)) == ("kept", "kept", "new")


def test_functions_are_worked_out_for_strings_that_are_there_and_that_come():
    strings = Interner()
    first = strings.codes(["Abc", "xyz"])
    lower, found = strings.use(TextFunction()), strings.use(TextFunction("b"))
    assert strings.use(TextFunction("b")) == found
    later = strings.codes([f"B{number}b" for number in range(100)] + ["b" * (TEXT_MAX + 1)])

    def result(number: int, code: int) -> int:
        return int(strings.results[number * (len(strings.extents) // 2) + code])

    def check(codes: list[int]) -> None:
        for code in codes:
            text = strings.text(code)
            assert strings.text(result(lower, code)) == text.lower()
            expected = -1 if len(text) > TEXT_MAX else int("b" in text)
            assert result(found, code) == expected

    check([*first.tolist(), *later.tolist()])
    strings.forget(first.tolist())
    check([*first.tolist(), *strings.codes(["B7b", "new B"]).tolist()])
    strings.drop(found)
    strings.drop(found)
    assert strings.use(TextFunction("^n")) == found
    assert [result(found, code) for code in strings.codes(["no", "on"]).tolist()] == [1, 0]


def test_random_strings_come_and_go():
    random_, strings = random.Random(3), Interner()
    live: dict[int, str] = {}
    for step in range(300):
        text = random_.choice("ab\u00e9") * random_.randrange(40) + str(random_.randrange(99))
        live[strings.code(text)] = text
        if step % 20 == 19:
            live = {code: text for code, text in live.items() if random_.random() < 0.5}
            strings.forget(live)
        assert all(strings.text(code) == text == read(strings, code) for code, text in live.items())
    assert len(strings.extents) < 2 * 300


def test_texts_that_are_alike_need_not_have_one_code():
    texts = Texts()
    texts.codes(["a", "b"])
    codes = texts.codes(["b", "c"]).tolist()
    assert [texts.text(code) for code in codes] == ["b", "c"]
    texts.forget([*codes, -1, 99])  # codes that were never given are of no concern
    assert (len(texts), texts.text(codes[0])) == (2, "b")
    assert set(texts.codes(["d", "e", "f"]).tolist()).isdisjoint(codes)
    assert len(texts) == 5


@pytest.mark.parametrize(("texts", "length"), [(40, 1), (3, 400)])
def test_many_strings_and_long_ones_ask_for_a_sweep(
    texts: int, length: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(interner, "SWEEP_MIN", 30)
    monkeypatch.setattr(interner, "SWEEP_LENGTH_MIN", 1000)
    strings = Interner()
    strings.codes([f"{number:0{length}}" for number in range(texts - 1)])
    strings._sweep_above, strings._sweep_length_above = 30, 1000
    strings.codes([f"{number:0{length}}" for number in range(texts)])
    assert strings.wants_sweep
    strings.forget([])
    assert not strings.wants_sweep
