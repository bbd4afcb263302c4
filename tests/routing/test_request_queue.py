"""Requests that wait for the tree to pause (routing.serving.request_queue)."""

from collections.abc import Callable

from routing.messages import Deploy, Remove
from routing.serving.request_queue import TEXT_LEAST, TOGETHER, RequestQueue


class Queue(RequestQueue[str]):
    """A queue whose texts have been read when the test says so."""

    def __init__(self) -> None:
        super().__init__(lambda _, then: self.read.append(then), lambda: None)
        self.read: list[Callable[[], None]] = []

    def ask(self, client: str, *entries: str) -> None:
        for entry in entries:
            text = Deploy(1, entry) if entry.startswith("text") else Remove(1, entry)
            self.add(client, text, entry)

    def have_read(self) -> None:
        self.read.pop(0)()


def test_what_stands_behind_a_text_waits_and_nothing_else() -> None:
    queue = Queue()
    queue.ask("m", "a", "text b", "c", "text d")
    queue.ask("n", "e")
    assert queue.take() == ["a", "e"]
    assert len(queue) == 3
    queue.go_on()
    assert not queue.is_ready
    queue.have_read()
    assert queue.take() == ["text b", "c"]
    queue.ask("m", "f")
    queue.have_read()
    queue.go_on()
    assert queue.take() == ["text d", "f"]
    queue.go_on()
    queue.ask("m", "g")
    assert queue.take() == ["g"]


def test_texts_of_one_client_are_deployed_some_at_a_time() -> None:
    queue, some = Queue(), TOGETHER // TEXT_LEAST
    texts = [f"text {number}" for number in range(some + 1)]
    queue.ask("m", *texts)
    for _ in range(some):
        queue.have_read()
    assert not queue.read
    assert queue.take() == texts[:some]
    queue.go_on()
    queue.have_read()
    assert queue.take() == texts[some:]


def test_a_text_that_is_read_when_all_was_given_back_is_none_of_the_next() -> None:
    queue = Queue()
    queue.ask("m", "text a", "b")
    queue.ask("n", "c")
    assert queue.clear() == ["c", "text a", "b"]
    queue.ask("m", "text d")
    queue.have_read()
    assert not queue.is_ready
    queue.have_read()
    assert queue.take() == ["text d"]
