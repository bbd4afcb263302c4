"""Names of hosts: which of IPv4 and IPv6 a socket is to speak, which names have no address, and
which addresses other machines may reach.

A socket of libzmq speaks one of the two, looks a name up by itself, and says nothing if that has no
address. So the name is looked up here, too.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from collections import Counter

WAIT_S = 0.25
FRESH_S = 5.0
"""For so long an answer is not asked for again."""
_HOST = re.compile(r"tcp://(?:[^;]*;)?(.+):[^:]*")
_lookups: dict[str, _Lookup] = {}
_failures: Counter[str] = Counter()
"""How often no connection could be made to the host of a name."""


class _Lookup:
    """A name that is being looked up; ``families`` of its addresses, of ``before`` until then."""

    def __init__(self, name: str, before: frozenset[int] | None) -> None:
        self.begun_at = time.monotonic()
        self.families = before
        self.done = threading.Event()
        threading.Thread(target=self._run, args=(name,), name="rexmq name", daemon=True).start()

    def _run(self, name: str) -> None:
        self.families = _families(name)
        self.done.set()


def uses_ipv6(endpoint: str) -> bool:
    """Whether a socket is to speak IPv6 to connect to an endpoint.

    Nobody waits for a slow name server, but whoever asks for a name first, for WAIT_S. Until more
    is known the last answer counts, and before that IPv4. A name with addresses of both kinds is
    tried by IPv4, and each time that no connection can be made by the other one: ``localhost``
    leads to a broker at ``tcp://127.0.0.1:7461``, and to one at ``tcp://[::1]:7461`` at the second
    try.
    """
    host = host_of(endpoint)
    known = _looked_up(host).families if _is_name(host) else families(endpoint)
    if not known:
        return False
    is_second = bool(_failures[host] % 2)
    return socket.AF_INET not in known or (socket.AF_INET6 in known and is_second)


def note_failure(endpoint: str) -> None:
    """No connection could be made to an endpoint."""
    if _is_name(host := host_of(endpoint)):
        _failures[host] += 1


def problem(endpoint: str) -> str:
    """A sentence if the name in an endpoint is known to have no address; "" if it is not."""
    host = host_of(endpoint)
    is_unknown = _is_name(host) and _looked_up(host).families == frozenset()
    return unknown(endpoint) if is_unknown else ""


def unknown(endpoint: str) -> str:
    """The words for a host without an address."""
    return f"no address is known for {host_of(endpoint)}"


def families(endpoint: str) -> frozenset[int]:
    """The families of the addresses of an endpoint's host, after a lookup that may take long; none
    where there is no host, no address, or the name is that of an interface.
    """
    host = host_of(endpoint)
    if _is_name(host):
        return _families(host)
    return frozenset({socket.AF_INET6 if ":" in host else socket.AF_INET}) if host else frozenset()


def host_of(endpoint: str) -> str:
    """The host of a TCP endpoint, without brackets; "" for other endpoints."""
    found = _HOST.fullmatch(endpoint)
    return found[1].removeprefix("[").removesuffix("]") if found else ""


def is_open_to_others(endpoint: str) -> bool:
    """Whether other machines may reach a resolved endpoint, as ``Transport.listen`` gives it."""
    scheme, _, rest = endpoint.partition("://")
    if scheme not in ("tcp", "http"):
        return False
    host = rest.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return True  # nobody knows
    mapped = getattr(address, "ipv4_mapped", None)
    return not (mapped or address).is_loopback


def _is_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host not in ("", "*")
    return False


def _looked_up(name: str) -> _Lookup:
    known = _lookups.get(name)
    if known is not None and time.monotonic() - known.begun_at < FRESH_S:
        return known
    lookup = _lookups[name] = _Lookup(name, None if known is None else known.families)
    if known is None:
        lookup.done.wait(WAIT_S)
    return lookup


def _families(name: str) -> frozenset[int]:
    try:
        return frozenset(int(one[0]) for one in socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return frozenset()
