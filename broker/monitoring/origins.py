"""Origins of connections: who counts as one, where there is nothing to know anybody by."""

from __future__ import annotations

import ipaddress

NETWORK_BITS = 64


def origin_of(host: str) -> str:
    """The origin of an address. Of IPv6 it is the /64, in which one machine has any address.

    >>> origin_of("192.0.2.1"), origin_of("::ffff:192.0.2.1"), origin_of("2001:db8::7:1")
    ('192.0.2.1', '192.0.2.1', '2001:db8::/64')
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # what a proxy calls it
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    rest = 128 - NETWORK_BITS
    return f"{ipaddress.IPv6Address(int(address) >> rest << rest)}/{NETWORK_BITS}"
