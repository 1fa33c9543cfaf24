# SPDX-License-Identifier: BSD-3-Clause
"""
rules.py: what must become of a packet, slowly and simply.

Written from the RFCs and from what the documentation promises, one rule after the other, with no look at how the
dataplane does it. It is told what nobody can know from outside (the key of the flow hash, and who owns each slot of a
table) and works the rest out for itself: is it for a VIP, whose is it, which backend, which bytes leave.

A packet that comes in is a frame of bytes; the answer is an Outcome.
"""
import dataclasses
import ipaddress
import struct

from rules_fragment import Datagrams
from rules_tunnel import Choices, Tunnel
from wire import ICMP, ICMP6, PROTOCOLS, SCTP, TCP, UDP, UDP_LITE, checksum, icmp_checksum, icmp_packet, quoted_source

MASK64 = (1 << 64) - 1


@dataclasses.dataclass
class Outcome:
    """kind: "tx", "kernel", "drop" or "held" (a fragment that waits); `reasons` of drops; `count` frames leave, and `make`
    says which: it is given those that did, for the few fields that are the dataplane's own choice. A drop may have a
    frame too: what the sender is told."""
    kind: str
    reasons: tuple = ()
    count: int = 0
    make: object = None
    backend: str = ""


def one(frame, kind="tx", reasons=()):
    return Outcome(kind, reasons, 1, lambda got: [frame], "the sender")


def together(outcomes):
    """One after the other."""
    def make(got):
        wanted, at = [], 0
        for outcome in outcomes:
            wanted += outcome.make(got[at:at + outcome.count]) if outcome.count else []
            at += outcome.count
        return wanted
    reasons = sum((outcome.reasons for outcome in outcomes), ())
    return Outcome("tx", reasons, sum(outcome.count for outcome in outcomes), make, outcomes[0].backend)


def ports_of(service):
    if service["port"] == "any":
        return 0, 65535
    first, _, last = str(service["port"]).partition("-")
    return int(first), int(last or first)


def drop(reason):
    return Outcome("drop", (reason,))


def mix(a, b):
    product = a * b
    return (product ^ product >> 64) & MASK64


def flow_hash(key, source, destination, sport, dport, protocol):
    """As dataplane/api/halbach/flow_key.h describes it; addresses are ipaddress objects, ports numbers."""
    ports = struct.unpack("<Q", struct.pack("!HH", sport, dport) + bytes((protocol, source.version, 0, 0)))[0]
    k = key
    if source.version == 4:
        first = struct.unpack("<I", source.packed)[0] << 32 | struct.unpack("<I", destination.packed)[0]
        total = ((first + k[0]) & MASK64) * ((ports + k[1]) & MASK64)
    else:
        s, d = struct.unpack("<QQ", source.packed), struct.unpack("<QQ", destination.packed)
        total = ((s[0] + k[0]) & MASK64) * ((s[1] + k[1]) & MASK64)
        total += ((d[0] + k[2]) & MASK64) * ((d[1] + k[3]) & MASK64)
        total += ((ports + k[4]) & MASK64) * k[5]
    total &= (1 << 128) - 1
    return mix(mix(total & MASK64 ^ k[6], total >> 64 ^ k[7]) ^ k[6], 0x9e3779b97f4a7c15)


class Packet:
    """The headers of a frame, and the first fault found in them ("" when there is none)."""

    def __init__(self, frame):
        self.frame, self.fault = frame, ""
        self.ip, self.family, self.destination, self.fragment = None, 0, None, None
        at = 14
        for _ in range(3):
            kind = struct.unpack("!H", frame[at - 2:at])[0] if len(frame) >= at else None
            if kind not in (0x8100, 0x88a8):
                break
            at += 4
        self.kind, self.l3 = kind, at
        if kind == 0x0800 and len(frame) >= at + 20:
            self.read_ipv4(frame[at:])
        elif kind == 0x86dd and len(frame) >= at + 40:
            self.read_ipv6(frame[at:])

    def read_ipv4(self, ip):
        self.family = 4
        self.source, self.destination = ipaddress.ip_address(ip[12:16]), ipaddress.ip_address(ip[16:20])
        header, length = (ip[0] & 15) * 4, struct.unpack("!H", ip[2:4])[0]
        word = struct.unpack("!H", ip[6:8])[0]
        self.tos, self.df, self.ttl, self.protocol = ip[1], bool(word & 0x4000), ip[8], ip[9]
        self.identification = ip[4:6]
        if ip[0] >> 4 != 4 or header < 20 or length < header or length > len(ip):
            self.fault = "ipv4_header"
        elif checksum(ip[:header]) != 0:
            self.fault = "ipv4_checksum"
        self.ip = ip[:length]
        if self.fault:
            return
        if self.ttl == 0:
            self.fault = "ttl_expired"
        elif self.is_martian():
            self.fault = "martian"
        elif word & 0x3fff:
            key = (self.source, self.destination, self.protocol, ip[4:6])
            self.read_fragment(header, (word & 0x1fff) * 8, word >> 13 & 1, key)
        else:
            self.read_l4(self.ip[header:], header)

    def read_ipv6(self, ip):
        self.family = 6
        self.source, self.destination = ipaddress.ip_address(ip[8:24]), ipaddress.ip_address(ip[24:40])
        length = struct.unpack("!H", ip[4:6])[0]
        self.tos, self.df, self.ttl = struct.unpack("!H", ip[:2])[0] >> 4 & 0xff, True, ip[7]
        if ip[0] >> 4 != 6 or 40 + length > len(ip):
            self.fault = "ipv6_header"
            return
        self.ip = ip[:40 + length]
        if self.ttl == 0:
            self.fault = "ttl_expired"
            return
        if self.is_martian():
            self.fault = "martian"
            return
        at, number = self.skip_extensions(40, ip[6])
        if number == 44:
            word = struct.unpack("!H", self.ip[at + 2:at + 4])[0]
            self.protocol = self.ip[at]
            key = (self.source, self.destination, self.ip[at + 4:at + 8])
            self.read_fragment(at + 8, word & 0xfff8, word & 1, key)
        elif not self.fault:
            self.protocol = number
            self.read_l4(self.ip[at:], at)

    def skip_extensions(self, at, number):
        """To what is behind them, or to the header of a fragment."""
        depth = 0
        while number in (0, 43, 44, 60):
            if depth == 8 or len(self.ip) < at + 8 or number == 0 and depth > 0:
                self.fault = "ipv6_extension"
                return at, None
            if number == 44 and struct.unpack("!H", self.ip[at + 2:at + 4])[0] & 0xfff9:
                return at, 44
            size = 8 if number == 44 else 8 + self.ip[at + 1] * 8
            if at + size > len(self.ip) or number == 43 and self.ip[at + 3] != 0:
                self.fault = "ipv6_extension"
                return at, None
            number, at, depth = self.ip[at], at + size, depth + 1
        return at, number

    def read_fragment(self, at, start, more, key):
        """RFC 791; RFC 8200, section 4.5; RFC 7112: all headers are in the first one. `at`: where its part begins."""
        length = len(self.ip) - at
        self.fragment = key, start, start + length, not more
        if length == 0 or start + length > 65535 or more and length % 8:
            self.fault = "fragment_length"
        elif start > 0:
            if self.family == 4 and self.protocol not in PROTOCOLS.values():
                self.fault = "fragment"
        else:
            if self.family == 6:
                at, self.protocol = self.skip_extensions(at, self.protocol)
            if self.fault or self.protocol == 44:
                self.fault = "fragment_tiny"
                return
            l4 = self.ip[at:]
            if self.protocol == UDP and len(l4) >= 8 and struct.unpack("!H", l4[4:6])[0] > len(l4):
                l4 += bytes(65535)  # the datagram's length, not the fragment's
            self.read_l4(l4, at)
            if self.fault == "l4_header" and not self.is_icmp():
                self.fault = "fragment_tiny"
            elif self.fault or self.is_icmp():
                self.fault = "fragment"

    def is_martian(self):
        """Addresses that nobody may be answered at, or that no host may have."""
        for address in (self.source, self.destination):
            if self.family == 4:
                first = address.packed[0]
                if first in (0, 127) or 224 <= first <= 239 or address.packed == b"\xff" * 4:
                    return True
            elif address.is_multicast or address.is_loopback or address.is_unspecified or address.ipv4_mapped:
                return True
        return self.source == self.destination or self.family == 6 and self.source.is_link_local

    def is_icmp(self):
        return self.protocol == (ICMP if self.family == 4 else ICMP6)

    def read_l4(self, l4, offset):
        self.l4 = offset
        self.message = l4
        if self.protocol == TCP:
            bad = len(l4) < 20 or not 20 <= (l4[12] >> 4) * 4 <= len(l4)
        elif self.protocol == UDP:
            bad = len(l4) < 8 or not 8 <= struct.unpack("!H", l4[4:6])[0] <= len(l4)
        elif self.protocol == SCTP:
            bad = len(l4) < 12
        elif self.is_icmp():
            bad = len(l4) < 8
        else:
            self.fault = "udp_lite" if self.protocol == UDP_LITE else "protocol"
            return
        if bad:
            self.fault = "l4_header"
            return
        self.sport, self.dport = struct.unpack("!HH", l4[:4])


class Rules:
    def __init__(self, config, facts):
        """`config`: the file, as YAML reads it. `facts`: what drive printed."""
        self.key, self.owners, self.names = None, {}, {}
        for line in facts:
            word, *rest = line.split()
            if word == "key":
                self.key = [int(value) for value in rest]
            elif word == "backend":
                self.names[int(rest[0])] = rest[2]
            elif word == "pool":
                self.owners[rest[0]] = [int(value) for value in rest[1:]]
        self.config, self.echo = config, config["icmp"].get("echo", "answer")
        self.choices, self.datagrams, self.pinged = Choices(), Datagrams(), {}
        self.pools = {pool["name"]: pool for pool in config["pools"]}
        self.services = config["services"]
        self.vips = [ipaddress.ip_network(str(service["vip"])) for service in self.services]

    # ---- whose is it? ----

    def find_service(self, packet):
        """The most specific one: the longest prefix, then the smallest range of ports."""
        matching = []
        for service in self.services:
            network, (first, last) = ipaddress.ip_network(str(service["vip"])), ports_of(service)
            if (packet.destination in network and PROTOCOLS[service["protocol"]] == packet.protocol and
                    first <= packet.dport <= last):
                matching.append((-network.prefixlen, last - first, service))
        return min(matching, key=lambda match: match[:2])[2] if matching else None

    def is_denied(self, service, packet):
        """The longest prefix of both lists decides."""
        best, allowed = -1, not service.get("allow")
        for key in ("allow", "deny"):
            for text in service.get(key, []):
                network = ipaddress.ip_network(str(text))
                if packet.source in network and network.prefixlen > best:
                    best, allowed = network.prefixlen, key == "allow"
        return not allowed

    def slot_hash(self, service, packet):
        """Of the 5-tuple, or of the source's first bits alone, with its port if that counts."""
        affinity = service.get("affinity", "flow")
        if affinity == "flow":
            return flow_hash(self.key, packet.source, packet.destination, packet.sport, packet.dport, packet.protocol)
        source = packet.source
        bits = service.get("affinity_prefix", source.max_prefixlen)
        masked = ipaddress.ip_network((source, bits), strict=False).network_address
        return flow_hash(self.key, masked, type(source)(0), packet.sport if affinity == "source_port" else 0, 0, 0)

    def choose(self, service, packet):
        """The backend of a new flow: the owner of the slot that the upper half of its hash is scaled to."""
        value = self.slot_hash(service, packet)
        owners = self.owners[service["pool"]]
        if not owners:
            return None
        name = self.names[owners[(value >> 32) * len(owners) >> 32]]
        return next(b for b in self.pools[service["pool"]]["backends"] if b["name"] == name)

    # ---- what leaves ----

    def send(self, packet, pool, backend, flow):
        tunnel = Tunnel(self.config, self.pools[pool], backend, self.choices)
        if len(packet.ip) > tunnel.room and (packet.df or tunnel.fragment == "drop"):
            return self.too_big(packet, tunnel.room)
        count, make = tunnel.frames(packet.ip, packet.df, flow)
        return Outcome("tx", (), count, make, f"{backend['name']} of {pool}")

    @staticmethod
    def back(packet, ip):
        """The way it came: to the sender's MAC address, with the same tags."""
        frame = packet.frame
        return frame[6:12] + frame[:6] + frame[12:packet.l3] + ip

    def too_big(self, packet, room):
        """RFC 1191, section 4; RFC 4443, section 3.2."""
        later = packet.fragment and packet.fragment[1] > 0
        if later or not packet.df or packet.family == 6 and len(packet.ip) <= 1280:
            return drop("oversize")
        if packet.family == 4:
            message = struct.pack("!BBHHH", 3, 4, 0, 0, room) + packet.ip[:576 - 28]
        else:
            message = struct.pack("!BBHI", 2, 0, 0, max(room, 1280)) + packet.ip[:1280 - 48]
        told = icmp_packet(packet.destination, packet.source, 0xc0, message)
        return one(self.back(packet, told), "drop", ("oversize",))

    def icmp(self, packet):
        message, version = packet.message, packet.family
        kind, code = message[0], message[1]
        errors, echo, answer = ((3, 11, 12), 8, 0) if version == 4 else ((1, 2, 3, 4), 128, 129)
        right = icmp_checksum(packet.source, packet.destination, message) == 0
        if kind == echo and code == 0 and self.echo == "drop":
            return drop("echo")
        if kind == echo and code == 0 and self.echo == "forward":
            return self.hand_on_ping(packet)  # its checksum is the end host's to look at (RFC 1122, 3.2.2)
        if kind == echo and code == 0:
            if not right:
                return drop("icmp_checksum")
            ip = icmp_packet(packet.destination, packet.source, packet.tos, bytes((answer,)) + message[1:])
            return one(self.back(packet, ip))
        if kind not in errors:
            return drop("icmp_type")
        if not right:
            return drop("icmp_checksum")
        if version == 4 and (kind, code) == (3, 4) and struct.unpack("!H", message[6:8])[0] < 552 or \
                version == 6 and kind == 2 and struct.unpack("!I", message[4:8])[0] < 1280:
            return drop("icmp_mtu")
        source = quoted_source(message[8:], version)
        return drop("icmp_quote" if source is None else "icmp_no_flow")  # none that is made here quotes a flow

    def hand_on_ping(self, packet):
        """To a backend of the VIP's first service, the same for all pings of a client. Which is not said."""
        pool = next(s["pool"] for s in self.services if packet.destination in ipaddress.ip_network(str(s["vip"])))
        client = packet.source, packet.destination
        tunnels = [Tunnel(self.config, self.pools[pool], b, self.choices) for b in self.pools[pool]["backends"]]

        def make(got):
            reached = [t for t in tunnels if t.to.packed == got[0][30:34] or t.to.packed == got[0][38:54]]
            tunnel = self.pinged.setdefault(client, reached[0] if reached else tunnels[0])
            again = next(t for t in tunnels if t.to == tunnel.to)
            return again.frames(packet.ip, packet.df, (*client, 0, 0, packet.protocol))[1](got)
        return Outcome("tx", (), 1, make, f"one of {pool}")

    def judge(self, frame):
        packet = Packet(frame)
        if packet.kind in (0x8100, 0x88a8) or packet.destination is None and packet.kind not in (0x0800, 0x86dd):
            return Outcome("kernel")
        if packet.destination is None:
            return drop("runt")
        if not any(packet.destination in network for network in self.vips):
            return Outcome("kernel")
        if packet.fault:
            return drop(packet.fault)
        if packet.fragment:
            return self.judge_fragment(packet)
        if packet.is_icmp():
            return self.icmp(packet)
        return self.balance(packet)

    def balance(self, packet):
        service = self.find_service(packet)
        if service is None:
            return drop("no_service")
        if self.is_denied(service, packet):
            return drop("denied")
        backend = self.choose(service, packet)
        if backend is None:
            return drop("no_backend")
        flow = packet.source, packet.destination, packet.sport, packet.dport, packet.protocol
        return self.send(packet, service["pool"], backend, flow)

    def judge_fragment(self, packet):
        """The first one's ports are those of all of them. Those that wait for it are judged when it is there."""
        datagram = self.datagrams.find(packet.fragment)
        if packet.fragment[1] == 0 and datagram.ports is None:
            datagram.ports = packet.protocol, packet.sport, packet.dport
        if datagram.ports is None:
            datagram.held.append(packet)
            return Outcome("held")
        outcomes, ports = [], datagram.ports
        waiting, datagram.held = [packet] + datagram.held, []
        while waiting and datagram.ports:
            part = waiting.pop(0)
            part.protocol, part.sport, part.dport = ports
            reason = datagram.refuses(part.fragment)
            outcomes.append(drop(reason) if reason else self.balance(part))
            datagram = self.datagrams.find(part.fragment)  # another one when this one is complete
        datagram.held += waiting
        return together(outcomes)

    def forget_datagrams(self):
        """Time goes by: those that still wait are dropped."""
        return Outcome("drop", ("fragment_no_first",) * self.datagrams.forget_all())
