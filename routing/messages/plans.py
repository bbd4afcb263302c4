"""How the root divides the rules over the brokers: pauses, plans, checkpoints."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from msgspec import Struct

from matcher.model import TIME_MIN
from routing.messages.single_tree import Catalog, Stay
from routing.messages.values import Delay, Name, Sequence, Text, Time


class RootTask(enum.Enum):
    """Things that a broker asks its root to do."""

    PLAN = "plan"  # brokers have joined the tree that are not in the plan
    CHECKPOINT = "checkpoint"  # it keeps many events, and might let some of them go
    RELEASE = "release"  # rules here wait for types in vain, and too many events wait with them
    END = "end"  # a rule there has ended by itself
    LEAVE = "leave"  # a broker has nothing any more that anybody could wait for, and will leave
    TREES = "trees"  # what sinks want of their own tree is another, or a link of a tree was lost


@dataclass(frozen=True, slots=True)
class RootRequest:
    """The sender, or a broker below it, needs something of the root.

    ``names``: for PLAN the brokers that have none, for RELEASE the types to be closed, for END
    the rule, for LEAVE the broker, for TREES the two ends of the link, if one was lost.
    """

    what: RootTask
    names: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """The root is about to divide the rules anew: local sources are to be held, below too.

    ``root`` and ``epoch`` are those of the tree, ``number`` counts the plans of a root. ``known``
    is the digest of what the root knows; ``introduce``: it has to be told who publishes.
    ``states``: the rules whose states it has, and up to where.
    """

    root: Name
    epoch: Sequence
    number: Sequence
    known: Name
    introduce: bool
    states: tuple[tuple[Name, Time], ...] = ()


class LostSource(Struct, array_like=True, frozen=True):
    """A source whose link is lost at ``home``, or that was sent away: it may go on elsewhere, above
    the number ``taken``, and beyond what it has promised of each type.
    """

    name: Name
    home: Name
    taken: Sequence
    promises: tuple[tuple[Name, Time], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Words of the sender and all below in answer to a Pause or a CheckpointProbe, under its
    number.

    To both: ``resume_from``: rules, and the least mark up to which those there who want a rule's
    composite events have them; ``promises``: types, and the least that sources there have promised
    of each.

    To a Pause, once they hold their sources and all that they said before has gone up: ``nodes``:
    each broker there, its father, and the types that its sources publish or have published.
    ``fronts``: types, and the greatest time of an event that was taken in there; ``marks`` and
    ``rules``: types and rules, and the greatest mark that was given there. ``sources``: names,
    homes and types of the open sources there. ``known``: what brokers there know otherwise than
    the root. ``wants``: brokers with sinks, and what these want if there are trees for them.
    ``front``: the greatest mark of a rule that was given or told there. ``ended``: rules that have
    ended there by themselves, and up to when they hold. ``committed``, from brokers that join:
    rules, and up to where nothing is kept for them any more where they were. ``logs``: brokers that
    have logs, and from which time on each is whole. ``lost``: the sources there whose links are
    lost. ``stays``, from brokers that join: the accounts of sources that are known there.

    To a CheckpointProbe, where the root chooses by it: ``wants``, too; ``counts``: types, how many
    events of each were published there so far, and the greatest time of one; ``found``: the sources
    of rules, and how many bytes of composite events were found, in how many batches; of brokers
    that have a rule, the most.
    """

    root: Name
    epoch: Sequence
    number: Sequence
    nodes: tuple[tuple[Name, Name, tuple[Name, ...]], ...] = ()
    fronts: tuple[tuple[Name, Time], ...] = ()
    marks: tuple[tuple[Name, Time], ...] = ()
    rules: tuple[tuple[Name, Time], ...] = ()
    resume_from: tuple[tuple[Name, Time], ...] = ()
    sources: tuple[tuple[Name, Name, tuple[Name, ...]], ...] = ()
    known: tuple[Catalog, ...] = ()
    wants: tuple[tuple[Name, tuple[Text, ...]], ...] = ()
    front: Time = TIME_MIN
    ended: tuple[tuple[Name, Time], ...] = ()
    promises: tuple[tuple[Name, Time], ...] = ()
    committed: tuple[tuple[Name, Time], ...] = ()
    counts: tuple[tuple[Name, Sequence, Time], ...] = ()
    found: tuple[tuple[Name, Sequence, Sequence], ...] = ()
    logs: tuple[tuple[Name, Time], ...] = ()
    stays: tuple[Stay, ...] = ()
    lost: tuple[LostSource, ...] = ()


class SinkTree(Struct, array_like=True, frozen=True):
    """A processing tree whose root is a broker that has sinks (7.3.2).

    ``number``: that of the plan which it began with. ``filters``: what the root's sinks want of it;
    ``mixed``: whether they want composite events of the single tree, too.
    """

    root: Name
    number: Sequence
    filters: tuple[Text, ...]
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The rules are divided over these brokers from now on; local sources are held no longer.

    ``nodes``: a broker, its father ("" for the root), the types that its sources publish or have
    published. ``anew``: everything that is kept is sent again, and evaluated again; ``resume_from``
    are rules, and the times from which on their composite events are to be found once more.
    ``absent``: brokers, and types of which inputs are open there, though nobody speaks for them:
    those out of reach, and those that are back without their memory. ``trees``: those of brokers
    with sinks, by root; ``links``: two brokers and the delay between them in us, of which they
    consist. ``rates``: types, and how many events of each come in 1,000 s, where masters are chosen
    by it. ``candidate``: the strategy by which ``adaptive`` divides, "" with any other. ``front``:
    the greatest mark of a rule that was given anywhere before; what sinks still hold lies before
    it. ``reopened``: brokers whose inputs had been closed, and where their types begin: what their
    sources bring of before is late. ``ended``: rules that have ended by themselves, the types that
    they define, and up to when they hold. ``moved``: types of sources that have gone on elsewhere:
    of these all marks begin anew.
    """

    root: Name
    epoch: Sequence
    number: Sequence
    nodes: tuple[tuple[Name, Name, tuple[Name, ...]], ...]
    absent: tuple[tuple[Name, tuple[Name, ...]], ...] = ()
    anew: bool = False
    resume_from: tuple[tuple[Name, Time], ...] = ()
    trees: tuple[SinkTree, ...] = ()
    links: tuple[tuple[Name, Name, Delay], ...] = ()
    rates: tuple[tuple[Name, Sequence], ...] = ()
    candidate: Name = ""
    front: Time = TIME_MIN
    reopened: tuple[tuple[Name, tuple[tuple[Name, Time], ...]], ...] = ()
    ended: tuple[tuple[Name, Name, Time], ...] = ()
    moved: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointProbe:
    """The root asks up to where composite events have arrived."""

    number: Sequence


@dataclass(frozen=True, slots=True)
class CheckpointCommitted:
    """The whole tree's answer to a checkpoint: nobody will need again what lies before."""

    number: Sequence
    resume_from: tuple[tuple[Name, Time], ...]
