"""Log lines: logfmt."""

import io
import logging
import subprocess
import sys

import pytest

from broker.log import LOGGER, Logfmt, log


@pytest.fixture
def lines():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Logfmt())
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


def test_lines_below_the_level_are_left_out(lines):
    log("debug", "detail")
    assert lines() == []


def test_a_program_that_did_not_ask_for_lines_gets_none():
    program = "from broker.log import log; log('warning', 'link lost')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
