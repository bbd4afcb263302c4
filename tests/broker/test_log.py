"""Log lines: logfmt."""

import io
import json
import logging
import subprocess
import sys
import time

import pytest

from broker.errors import ConfigurationError
from broker.keys import BY_NAME
from broker.log import ALIKE_MAX, LOGGER, Bounded, Fields, log, logfmt, set_level


@pytest.fixture
def lines():
    stream = io.StringIO()
    handler = Bounded(stream)
    handler.setFormatter(Fields(logfmt))
    before = LOGGER.handlers[:], LOGGER.level
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(logging.INFO)  # by its method, which forgets what it has found out about levels
    yield lambda: stream.getvalue().splitlines()
    LOGGER.handlers[:] = before[0]
    LOGGER.setLevel(before[1])


def test_a_line_has_time_level_message_and_fields(lines):
    log("info", "client lost", {"peer": "s1", "silence_s": 3.5})
    (line,) = lines()
    assert line.startswith("time=20")
    assert line.endswith('Z level=info message="client lost" peer=s1 silence_s=3.5')


def test_values_that_need_it_are_quoted_and_stay_on_one_line(lines):
    log("warning", "refused", {"reason": 'a "b"\nc=d', "empty": "", "path": "a\\b"})
    (line,) = lines()
    assert line.endswith(r'reason="a \"b\"\nc=d" empty="" path=a\b')


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("info", ["broker", "routing"]),
        ("info,routing=warning", ["broker"]),
        ("error,routing=debug,client=info", ["routing"]),
    ],
)
def test_parts_may_have_levels_of_their_own(lines, said, kept):
    set_level(said)
    for part in ("broker", "routing"):
        log("info", "said", {"by": part}, part)
    set_level("info")
    assert [line.rpartition("=")[2] for line in lines()] == kept


@pytest.mark.parametrize(
    ("value", "level"),
    [
        ("debug", "debug"),
        ("routing=debug", "info,routing=debug"),
        ("error, client=info", "error,client=info"),
        ({"all": "warning", "routing": "info"}, "warning,routing=info"),
        ({"security": "error"}, "info,security=error"),
    ],
)
def test_levels_are_a_text_or_a_table(value, level):
    key = BY_NAME["log_level"]
    assert key.parse(value, "here") == level
    assert key.parse(level, "here") == level


@pytest.mark.parametrize("value", ["", "loud", "info,nobody=debug", "info,routing", "info,", 3, []])
def test_no_other_levels_are_taken(value):
    with pytest.raises(ConfigurationError, match="here: expected a level"):
        BY_NAME["log_level"].parse(value, "here")


def test_lines_below_the_level_are_left_out(lines):
    log("debug", "detail")
    assert lines() == []


def test_a_program_that_did_not_ask_for_lines_gets_none():
    program = "from broker.log import log; log('warning', 'link lost')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_of_many_lines_alike_a_few_are_written_and_the_others_counted(lines):
    """Whoever they are about; other lines are not affected."""
    for number in range(ALIKE_MAX + 312):
        log("warning", "closed", {"peer": f"p{number}", "reason": number})
    log("warning", "neighbour down", {"neighbour": "b2"})
    log("info", "closed", {"peer": "q"})
    first = lines()
    assert len(first) == ALIKE_MAX + 2
    assert first[ALIKE_MAX - 1].endswith(f"peer=p{ALIKE_MAX - 1} reason={ALIKE_MAX - 1}")
    deadline = time.monotonic() + 30
    while len(lines()) == ALIKE_MAX + 2:  # nothing else comes
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (count,) = lines()[ALIKE_MAX + 2 :]
    assert count.endswith("level=warning message=closed more_in_the_last_second=312")
    log("warning", "closed", {"peer": "r"})
    assert lines()[-1].endswith("message=closed peer=r")


def test_what_was_left_out_is_counted_when_the_program_ends_too():
    program = (
        "from broker.log import log, start_logging; start_logging('info')\n"
        "for number in range(100): log('info', 'welcomed', {'client': number})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    written = done.stderr.splitlines()
    assert len(written) == ALIKE_MAX + 1
    assert written[-1].endswith(f"message=welcomed more_in_the_last_second={100 - ALIKE_MAX}")


def test_lines_as_json():
    program = (
        "from broker.log import log, start_logging; start_logging('info', 'json', broker='b\"1')\n"
        "log('warning', 'closed', {'peer': 'é', 'events': 3, 'reason': ValueError('no')})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "warning",
        "broker": 'b"1',
        "message": "closed",
        "peer": "é",
        "events": 3,
        "reason": "no",
    }
