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

GATEWAY_MAC = bytes.fromhex("020000000001")
OWN_MAC = bytes.fromhex("020000000010")
SOURCE4, SOURCE6 = ipaddress.ip_address("198.51.100.10"), ipaddress.ip_address("2001:db8:0:1::10")
MTU = 1500
TCP, UDP, SCTP, ICMP, ICMP6, UDP_LITE = 6, 17, 132, 1, 58, 136
PROTOCOLS = {"tcp": TCP, "udp": UDP, "sctp": SCTP}
MASK64 = (1 << 64) - 1


@dataclasses.dataclass
class Outcome:
    """kind: "tx", "kernel", "drop" or "held" (a fragment that waits); `reason` of a drop; `frames` that leave, each with a
    set of the positions whose bytes are the dataplane's own choice (an IP ID, a flow label, a source port). A drop may
    have a frame too: what the sender is told."""
    kind: str
    reason: str = ""
    frames: tuple = ()
    backend: str = ""


def ports_of(service):
    if service["port"] == "any":
        return 0, 65535
    first, _, last = str(service["port"]).partition("-")
    return int(first), int(last or first)


def drop(reason):
    return Outcome("drop", reason)


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip_packet(source, destination, tos, protocol, payload):
    """One of the dataplane's own: TTL 64, IPv4 with DF and without ID, IPv6 without flow label."""
    if source.version == 6:
        return struct.pack("!IHBB16s16s", 6 << 28 | tos << 20, len(payload), protocol, 64, source.packed,
                           destination.packed) + payload
    header = struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + len(payload), 0, 0x4000, 64, protocol, 0, source.packed,
                         destination.packed)
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def icmp_checksum(source, destination, message):
    """0 when the one in the message is right. RFC 792; RFC 4443, section 2.3."""
    if source.version == 6:
        message = source.packed + destination.packed + struct.pack("!II", len(message), ICMP6) + message
    return checksum(message)


def icmp_packet(source, destination, tos, message):
    """`message` without its checksum."""
    value = icmp_checksum(source, destination, message[:2] + bytes(2) + message[4:])
    return ip_packet(source, destination, tos, ICMP6 if source.version == 6 else ICMP,
                     message[:2] + struct.pack("!H", value) + message[4:])


def quoted_source(quote, version):
    """The source of a quoted packet that is no later fragment, or None when it can't be read."""
    if version == 4:
        size = (quote[0] & 15) * 4 if len(quote) >= 20 else 0
        if size < 20 or size > len(quote) or quote[0] >> 4 != 4 or struct.unpack("!H", quote[6:8])[0] & 0x1fff:
            return None
        return quote[12:16]
    if len(quote) < 40 or quote[0] >> 4 != 6:
        return None
    at, number = 40, quote[6]
    for _ in range(8):
        if number not in (0, 43, 44, 60):
            return quote[8:24]
        if len(quote) < at + 8 or number == 44 and struct.unpack("!H", quote[at + 2:at + 4])[0] & 0xfff8:
            return None
        size = 8 if number == 44 else 8 + quote[at + 1] * 8
        if at + size > len(quote):
            return None
        number, at = quote[at], at + size
    return None


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
        self.ip, self.family, self.destination = None, 0, None
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
            self.fault = "fragment"  # not made here: one changed byte is a wrong checksum
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
            self.read_fragment(at)
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

    def read_fragment(self, at):
        """RFC 8200, section 4.5; RFC 7112: all headers are in the first one."""
        word = struct.unpack("!H", self.ip[at + 2:at + 4])[0]
        start, more, length = word & 0xfff8, word & 1, len(self.ip) - at - 8
        if length == 0 or start + length > 65535 or more and length % 8:
            self.fault = "fragment_overlap"
        elif start > 0:
            self.fault = "held"
        else:
            at, self.protocol = self.skip_extensions(at + 8, self.ip[at])
            if self.fault or self.protocol == 44:
                self.fault = "fragment_overlap"
                return
            l4 = self.ip[at:]
            if self.protocol == UDP and len(l4) >= 8 and struct.unpack("!H", l4[4:6])[0] > len(l4):
                l4 += bytes(65535)  # the datagram's length, not the fragment's
            self.read_l4(l4, at)
            if self.fault == "l4_header":
                self.fault = "fragment_overlap"
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

    def tunnel(self, packet, backend):
        """IPIP: RFC 2003, RFC 2473, RFC 4213; DSCP and ECN by RFC 6040, section 4.1."""
        to = ipaddress.ip_address(backend["address"])
        protocol = 4 if packet.family == 4 else 41
        own = set()
        if to.version == 4:
            room = MTU - 20
            word = 0x4000 if packet.df else 0
            outer = struct.pack("!BBHHHBBH4s4s", 0x45, packet.tos, 20 + len(packet.ip), 0, word, 64, protocol, 0,
                                SOURCE4.packed, to.packed)
            outer = outer[:10] + struct.pack("!H", checksum(outer)) + outer[12:]
            if not packet.df:
                own = {18, 19, 24, 25}  # ID, and the checksum with it
            kind = 0x0800
        else:
            room = MTU - 40
            outer = struct.pack("!IHBB16s16s", 6 << 28 | packet.tos << 20, len(packet.ip), protocol, 64,
                                SOURCE6.packed, to.packed)
            own = {15, 16, 17}  # flow label
            kind = 0x86dd
        if len(packet.ip) > room:
            return self.too_big(packet, room)
        frame = GATEWAY_MAC + OWN_MAC + struct.pack("!H", kind) + outer + packet.ip
        return Outcome("tx", frames=((frame, own),), backend=backend["name"])

    @staticmethod
    def back(packet, ip):
        """The way it came: to the sender's MAC address, with the same tags."""
        frame = packet.frame
        return frame[6:12] + frame[:6] + frame[12:packet.l3] + ip, set()

    def too_big(self, packet, room):
        """RFC 1191, section 4; RFC 4443, section 3.2."""
        if not packet.df or packet.family == 6 and len(packet.ip) <= 1280:
            return drop("oversize")
        if packet.family == 4:
            message = struct.pack("!BBHHH", 3, 4, 0, 0, room) + packet.ip[:576 - 28]
        else:
            message = struct.pack("!BBHI", 2, 0, 0, max(room, 1280)) + packet.ip[:1280 - 48]
        told = icmp_packet(packet.destination, packet.source, 0xc0, message)
        return Outcome("drop", "oversize", (self.back(packet, told),), "the sender")

    def icmp(self, packet):
        message, version = packet.message, packet.family
        kind, code = message[0], message[1]
        errors, echo, answer = ((3, 11, 12), 8, 0) if version == 4 else ((1, 2, 3, 4), 128, 129)
        right = icmp_checksum(packet.source, packet.destination, message) == 0
        if kind == echo and code == 0:
            if not right:
                return drop("icmp_checksum")
            ip = icmp_packet(packet.destination, packet.source, packet.tos, bytes((answer,)) + message[1:])
            return Outcome("tx", frames=(self.back(packet, ip),), backend="the sender")
        if kind not in errors:
            return drop("icmp_type")
        if not right:
            return drop("icmp_checksum")
        if version == 4 and (kind, code) == (3, 4) and struct.unpack("!H", message[6:8])[0] < 552 or \
                version == 6 and kind == 2 and struct.unpack("!I", message[4:8])[0] < 1280:
            return drop("icmp_mtu")
        source = quoted_source(message[8:], version)
        return drop("icmp_quote" if source is None else "icmp_no_flow")  # none that is made here quotes a flow

    def judge(self, frame):
        packet = Packet(frame)
        if packet.kind in (0x8100, 0x88a8) or packet.destination is None and packet.kind not in (0x0800, 0x86dd):
            return Outcome("kernel")
        if packet.destination is None:
            return drop("runt")
        if not any(packet.destination in network for network in self.vips):
            return Outcome("kernel")
        if packet.fault == "held":
            return Outcome("held")
        if packet.fault:
            return drop(packet.fault)
        if packet.is_icmp():
            return self.icmp(packet)
        service = self.find_service(packet)
        if service is None:
            return drop("no_service")
        if self.is_denied(service, packet):
            return drop("denied")
        backend = self.choose(service, packet)
        return self.tunnel(packet, backend) if backend else drop("no_backend")
