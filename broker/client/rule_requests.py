"""Requests that change rules, of which it may stay unknown whether they were carried out.

A network that changes, or a link that breaks, may take the answer with it, or the request. Then the
client looks in the broker's list of rules, and says what it finds there. A request is steps: what
is asked, one after another; whoever takes the steps waits for the answers, in a thread or a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

from broker.errors import RefusedError
from broker.schemas import type_of
from routing.messages import Code, ListRules, Remove, ShowRule, StatusRequest
from routing.session import Session

Answer: TypeAlias = Mapping[str, Any]
Steps: TypeAlias = Generator[Callable[[], int], Answer, Answer]
"""Yields requests, takes their answers or has their refusals thrown at it, and gives an answer."""


def deploying(
    session: Session,
    text: str,
    replace: bool,
    file: str,
    since: int | None = None,
    removes: Sequence[str] = (),
) -> Steps:
    """Deploy rules. RefusedError where they are refused, or where it stays unknown whether they
    are deployed and the list does not have them.
    """
    try:
        return (yield lambda: session.deploy(text, replace, file, since, removes))
    except RefusedError as refusal:
        if refusal.code != Code.SILENT.value:
            raise
        found = yield from _look_for(session, text, file, removes)
        if found is None:
            text = f"{refusal.reason}; the list of rules does not have them: add them again"
            raise RefusedError(text, refusal.code) from None
        return found


def removing(session: Session, name: str) -> Steps:
    """Remove a rule. Where the list alone says that it is gone, ``until`` is None: it is not known.
    RefusedError as ``deploying``.
    """
    try:
        return (yield lambda: session.ask(Remove, name))
    except RefusedError as refusal:
        if refusal.code != Code.SILENT.value:
            raise
        listed = yield lambda: session.ask(ListRules)
        if any(one["name"] == name for one in listed["rules"]):
            text = f"{refusal.reason}; the list of rules has {name} still: remove it again"
            raise RefusedError(text, refusal.code) from None
        return {"name": name, "since": None, "until": None, "version": None}


def _look_for(
    session: Session, text: str, file: str, removes: Sequence[str]
) -> Generator[Any, Any, Answer | None]:
    """The rules of a text as they are deployed; None where one is not, or another of its name, or
    one is there that is to be gone.
    """
    status = yield lambda: session.ask(StatusRequest)
    known = {one["name"]: type_of(one["schema"]) for one in status["types"]}
    from rules.language import load  # the language, for the few who have to look

    texts = {rule.name: rule.text for rule in load(text, file=file, known=known).rules}
    listed = yield lambda: session.ask(ListRules)
    rules = [one for one in listed["rules"] if one["name"] in texts]
    if any(one["name"] in removes for one in listed["rules"]):
        return None
    for one in rules:
        shown = yield lambda name=one["name"]: session.ask(ShowRule, name)
        if shown["text"] != texts[one["name"]]:
            return None
    return {"rules": rules, "replaced": []} if len(rules) == len(texts) else None
