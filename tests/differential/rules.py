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
    """kind: "tx", "kernel" or "drop"; `reason` of a drop; `frames` that leave, each with a set of the positions whose
    bytes are the dataplane's own choice (an IP ID, a flow label, a source port)."""
    kind: str
    reason: str = ""
    frames: tuple = ()
    backend: str = ""


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
        self.fragment = word & 0x3fff
        if self.fragment:
            self.fault = "fragment"
        elif self.ttl == 0:
            self.fault = "ttl_expired"
        elif self.is_martian():
            self.fault = "martian"
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
        at, number, depth = 40, ip[6], 0
        while number in (0, 43, 44, 60):
            if number == 44:
                self.fault = "fragment"
                return
            if depth == 8 or len(self.ip) < at + 8 or number == 0 and depth > 0:
                self.fault = "ipv6_extension"
                return
            size = 8 + self.ip[at + 1] * 8
            if at + size > len(self.ip) or number == 43 and self.ip[at + 3] != 0:
                self.fault = "ipv6_extension"
                return
            number, at, depth = self.ip[at], at + size, depth + 1
        self.protocol = number
        self.read_l4(self.ip[at:], at)

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

    def read_l4(self, l4, offset):
        self.l4 = offset
        if self.protocol == TCP:
            bad = len(l4) < 20 or not 20 <= (l4[12] >> 4) * 4 <= len(l4)
        elif self.protocol == UDP:
            bad = len(l4) < 8 or not 8 <= struct.unpack("!H", l4[4:6])[0] <= len(l4)
        else:
            self.fault = "protocol"
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
        self.vips = {ipaddress.ip_address(service["vip"]) for service in self.services}

    # ---- whose is it? ----

    def find_service(self, packet):
        for service in self.services:
            if (ipaddress.ip_address(service["vip"]) == packet.destination and
                    PROTOCOLS[service["protocol"]] == packet.protocol and service["port"] == packet.dport):
                return service
        return None

    def choose(self, service, packet):
        """The backend of a new flow: the owner of the slot that the upper half of its hash is scaled to."""
        value = flow_hash(self.key, packet.source, packet.destination, packet.sport, packet.dport, packet.protocol)
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
            return drop("oversize")
        frame = GATEWAY_MAC + OWN_MAC + struct.pack("!H", kind) + outer + packet.ip
        return Outcome("tx", frames=((frame, own),), backend=backend["name"])

    def judge(self, frame):
        packet = Packet(frame)
        if packet.kind in (0x8100, 0x88a8) or packet.destination is None and packet.kind not in (0x0800, 0x86dd):
            return Outcome("kernel")
        if packet.destination is None:
            return drop("runt")
        if packet.destination not in self.vips:
            return Outcome("kernel")
        if packet.fault:
            return drop(packet.fault)
        service = self.find_service(packet)
        if service is None:
            return drop("no_service")
        backend = self.choose(service, packet)
        return self.tunnel(packet, backend) if backend else drop("no_backend")
