"""Everything that crosses a link, as values (protocol.md section 2; docs/protocol.md).

Times are int microseconds of event time, intervals are seconds; credit and limits count events.
The annotations are the law for :mod:`routing.wire` too: what they do not allow is not decoded.
"""

from __future__ import annotations

from typing import TypeAlias

from routing.messages.clients import (
    PLAIN_KINDS as PLAIN_KINDS,
    Acknowledged as Acknowledged,
    Advertise as Advertise,
    AskingAll as AskingAll,
    Confirmed as Confirmed,
    Credit as Credit,
    DealtWith as DealtWith,
    Delivery as Delivery,
    Deploy as Deploy,
    Drain as Drain,
    FromBroker as FromBroker,
    FromClient as FromClient,
    Goodbye as Goodbye,
    Heartbeat as Heartbeat,
    Hello as Hello,
    KeepDurable as KeepDurable,
    ListRules as ListRules,
    LogEntry as LogEntry,
    LogPart as LogPart,
    LogReceived as LogReceived,
    Nack as Nack,
    Promise as Promise,
    Publish as Publish,
    ReadLog as ReadLog,
    Refused as Refused,
    Rejected as Rejected,
    Remove as Remove,
    RemoveDurable as RemoveDurable,
    ResendDurable as ResendDurable,
    SendAway as SendAway,
    ShowLog as ShowLog,
    ShowNetwork as ShowNetwork,
    ShowQueue as ShowQueue,
    ShowRule as ShowRule,
    ShowTrace as ShowTrace,
    ShowUsers as ShowUsers,
    StatusRequest as StatusRequest,
    Subscribe as Subscribe,
    SubscriptionPaused as SubscriptionPaused,
    Unadvertise as Unadvertise,
    Unsubscribe as Unsubscribe,
    Welcome as Welcome,
)
from routing.messages.events import (
    Awakening as Awakening,
    Flow as Flow,
    Forward as Forward,
    Part as Part,
    PlanFollowed as PlanFollowed,
    RuleState as RuleState,
    Shared as Shared,
)
from routing.messages.links import (
    LinkAck as LinkAck,
    LinkHello as LinkHello,
    LinkState as LinkState,
    LinkStates as LinkStates,
)
from routing.messages.packets import (
    LINK_KINDS as LINK_KINDS,
    Carried as Carried,
    FromNeighbour as FromNeighbour,
    Packet as Packet,
    Routed as Routed,
)
from routing.messages.plans import (
    CheckpointCommitted as CheckpointCommitted,
    CheckpointProbe as CheckpointProbe,
    LostSource as LostSource,
    Pause as Pause,
    Plan as Plan,
    Report as Report,
    RootRequest as RootRequest,
    RootTask as RootTask,
    SinkTree as SinkTree,
)
from routing.messages.rights import (
    COMMANDS as COMMANDS,
    EVERYTHING as EVERYTHING,
    UNLIMITED as UNLIMITED,
    Act as Act,
    Limits as Limits,
    Permit as Permit,
    Rights as Rights,
)
from routing.messages.single_tree import (
    ANY_TYPE as ANY_TYPE,
    Answered as Answered,
    Asked as Asked,
    Asking as Asking,
    Awaited as Awaited,
    Catalog as Catalog,
    CatalogDelta as CatalogDelta,
    HandOver as HandOver,
    HandOverStep as HandOverStep,
    Hold as Hold,
    NetworkAnswer as NetworkAnswer,
    NetworkQuery as NetworkQuery,
    Question as Question,
    RuleFacts as RuleFacts,
    Stay as Stay,
    Stays as Stays,
    SubscriptionAck as SubscriptionAck,
    SubscriptionUpdate as SubscriptionUpdate,
    TableDelta as TableDelta,
)
from routing.messages.values import (
    ENTRIES_MAX as ENTRIES_MAX,
    LINK_VERSION as LINK_VERSION,
    TYPES_MAX as TYPES_MAX,
    VERSION as VERSION,
    Acks as Acks,
    Code as Code,
    Delay as Delay,
    Document as Document,
    Name as Name,
    Number as Number,
    Request as Request,
    Seconds as Seconds,
    Sequence as Sequence,
    Tag as Tag,
    Text as Text,
    Time as Time,
    Trace as Trace,
    Traces as Traces,
    WhenFull as WhenFull,
)

Message: TypeAlias = FromClient | FromBroker | FromNeighbour | Routed | HandOver
GATHERED: frozenset[type] = frozenset(
    {Publish, Promise, Credit, Heartbeat, Flow, Forward, Shared, Awakening, LinkAck}
)
"""Events, marks, credit and signs of life: what follows from several of them may be done once."""
BEARING = Flow, Forward, Shared
"""Messages between brokers that bear events; a union would be made anew wherever one is asked."""
