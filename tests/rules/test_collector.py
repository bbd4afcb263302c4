"""The collector is off inside, and afterwards as it was."""

import gc

import pytest

import rules
from rules.collector import collector_paused


def test_it_is_paused_inside_and_goes_on_afterwards() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_inside_sets_it_going_too() -> None:
    with pytest.raises(rules.RuleErrors):
        rules.load("nonsense")
    assert gc.isenabled()


def test_who_had_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        rules.load("event A()")
        assert not gc.isenabled()
    finally:
        gc.enable()
