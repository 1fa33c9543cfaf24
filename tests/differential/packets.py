# SPDX-License-Identifier: BSD-3-Clause
"""
packets.py: random packets. Most are whole and valid, of every kind that the rules speak of; some have one thing wrong.

What matters is that all kinds come, in all combinations: VLAN tags, options, extension headers, sizes around each limit,
addresses beside those of the VIPs.
"""
import ipaddress
import struct

from wire import ICMP, ICMP6, SCTP, TCP, UDP, UDP_LITE, checksum, fix_ipv4

MACS = bytes.fromhex("020000000010020000000001")
SIZES = (0, 1, 2, 7, 8, 20, 100, 536, 1200, 1399, 1400, 1408, 1412, 1420, 1432, 1440, 1452, 1460)


class Source:
    def __init__(self, random, services):
        """`services`: what packets are aimed at, as (network, protocol, first port, last port)."""
        self.random, self.services, self.aim = random, services, services[0]
        self.flows, self.flow, self.waiting = [], None, []

    def rarely(self, share):
        return self.random.random() < share

    def address(self, version):
        if version == 4:
            return ipaddress.ip_address(bytes((self.random.choice((1, 10, 100, 203, 223)),)) + self.random.randbytes(3))
        return ipaddress.ip_address(bytes.fromhex("20010db8") + self.random.randbytes(12))

    def destination(self):
        """A VIP nearly always; else one beside it, or anything."""
        self.aim = self.random.choice(self.services)
        network = self.aim[0]
        address = network[self.random.randrange(network.num_addresses)]
        if self.rarely(0.05):
            address = network[0] + self.random.choice((-1, network.num_addresses))
        if self.rarely(0.02):
            address = self.address(address.version)
        return address

    def payload(self):
        size = self.random.choice(SIZES) + self.random.choice((0, 0, 0, -1, 1, self.random.randrange(60)))
        return self.random.randbytes(max(0, min(size, 1500)))

    def tcp(self, source, destination, data):
        flags = self.random.choice((2, 2, 16, 16, 16, 24, 17, 4, 20, 0, 0x3f))
        options = self.random.choice((b"", b"", b"\x02\x04\x05\xb4", b"\x01" * 12, b"\x01" * 40))
        header = struct.pack("!HHIIBBHHH", *self.pair(), self.random.getrandbits(32), self.random.getrandbits(32),
                             (20 + len(options)) // 4 << 4, flags, 8192, 0, 0) + options
        return self.sum(TCP, source, destination, header + data, 16)

    def udp(self, source, destination, data):
        header = struct.pack("!HHHH", *self.pair(), 8 + len(data), 0)
        if source.version == 4 and self.rarely(0.2):
            return header + data  # no checksum
        return self.sum(UDP, source, destination, header + data, 6)

    def pair(self):
        if self.flow:
            return self.flow
        port = self.random.randint(*self.aim[2:])
        if self.rarely(0.1):
            port = self.random.choice((self.aim[2] - 1, self.aim[3] + 1, self.random.randrange(65536)))
        self.flow = self.random.randrange(1, 65536), port % 65536
        return self.flow

    @staticmethod
    def sum(protocol, source, destination, l4, at):
        pseudo = source.packed + destination.packed + struct.pack("!II", len(l4), protocol)
        value = checksum(pseudo + l4) or 0xffff
        return l4[:at] + struct.pack("!H", value) + l4[at + 2:]

    def l4(self, source, destination):
        kind = {TCP: "tcp", UDP: "udp", SCTP: "sctp"}[self.aim[1]]
        if self.rarely(0.15):
            kind = self.random.choices(("tcp", "udp", "icmp", "sctp", "lite", "other"), (4, 4, 4, 1, 1, 1))[0]
        if kind == "tcp":
            return TCP, self.tcp(source, destination, self.payload())
        if kind == "udp":
            return UDP, self.udp(source, destination, self.payload())
        if kind == "icmp":
            data = self.random.randbytes(self.random.choice((0, 8, 56)))
            number = self.random.choice((8, 0, 13) if source.version == 4 else (128, 129, 1))
            message = struct.pack("!BBHHH", number, 0, 0, 7, 1) + data
            if source.version == 6:
                return ICMP6, self.sum(ICMP6, source, destination, message, 2)
            return ICMP, message[:2] + struct.pack("!H", checksum(message)) + message[4:]
        if kind == "sctp":
            return SCTP, struct.pack("!HHII", *self.pair(), 1, 0) + self.payload()
        if kind == "lite":
            return UDP_LITE, struct.pack("!HHHH", *self.pair(), 8, 1) + self.payload()
        return self.random.choice((47, 50, 51, 89, 253)), self.random.randbytes(24)

    def ipv4(self, source, destination, protocol, l4):
        options = self.random.choice((b"", b"", b"", b"", b"\x01\x01\x01\x00", b"\x01" * 40, b"\x94\x04\0\0\x44\x04\5\0"))
        ttl = self.random.choice((64, 64, 255, 2, 1, 0 if self.rarely(0.2) else 128))
        word = self.random.choice((0x4000, 0x4000, 0, 0, 0x8000, 0xc000))
        header = struct.pack("!BBHHHBBH4s4s", 0x40 | (20 + len(options)) // 4, self.random.choice((0, 0, 0xb8, 3, 255)),
                             20 + len(options) + len(l4), self.random.getrandbits(16), word, ttl, protocol, 0,
                             source.packed, destination.packed) + options
        return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + l4

    def ipv6(self, source, destination, protocol, l4):
        chain = b""
        headers = ((), (), (), (0,), (60,), (0, 60), (43, 60), (0, 60, 43), (60,) * 8)
        if self.rarely(0.1):
            headers = ((60,) * 9, (60, 0))
        for number in reversed(self.random.choice(headers)):
            size = self.random.choice((0, 0, 1, 2))
            body = bytes((0, 0)) if number == 43 else bytes((1, 4))
            chain = bytes((protocol, size)) + body + bytes(4 + 8 * size) + chain
            protocol = number
        hops = self.random.choice((64, 64, 255, 1, 0 if self.rarely(0.2) else 128))
        label = self.random.getrandbits(20)
        word = 6 << 28 | self.random.choice((0, 0, 0xb8, 3, 255)) << 20 | label
        return struct.pack("!IHBB", word, len(chain) + len(l4), protocol, hops) + source.packed + destination.packed + \
            chain + l4

    def ends(self):
        """Source and destination; now and then those of a flow that was there before, with its ports."""
        if self.flows and self.rarely(0.2):
            source, destination, self.aim, self.flow = self.random.choice(self.flows)
            return source, destination
        self.flow = None
        destination = self.destination()
        source = self.address(destination.version)
        if self.rarely(0.01):
            source = self.random.choice((destination, ipaddress.ip_address(
                "127.0.0.1" if destination.version == 4 else "::1")))
        return source, destination

    def frame(self):
        if self.waiting and self.rarely(0.7):
            return self.waiting.pop(0)
        source, destination = self.ends()
        if self.rarely(0.05) and destination in self.aim[0] and source != destination and not source.is_loopback:
            self.datagram(source, destination)
            return self.waiting.pop(0)
        protocol, l4 = self.l4(source, destination)
        if self.flow and protocol in (TCP, UDP, SCTP):
            self.flows = self.flows[-50:] + [(source, destination, self.aim, self.flow)]
        make = self.ipv4 if destination.version == 4 else self.ipv6
        ip = make(source, destination, protocol, l4)
        return self.link(self.damage(ip) if self.rarely(0.03) else ip, destination.version)

    def link(self, ip, version):
        tags = self.random.choice(((), (), (), (), (0x8100,), (0x88a8, 0x8100), (0x8100,) * 3))
        link = b"".join(struct.pack("!HH", tag, self.random.getrandbits(12)) for tag in tags)
        kind = 0x0800 if version == 4 else 0x86dd
        return MACS + link + struct.pack("!H", kind) + ip + bytes(max(0, 46 - len(ip)))

    # ---- fragments ----

    def datagram(self, source, destination):
        """Fragments of one, in order or not, now and then with one missing, twice, or across two others."""
        self.flow = self.flow or (self.random.randrange(1, 65536), self.random.randint(*self.aim[2:]))
        data = self.random.randbytes(self.random.randrange(100, 4500))
        kind = self.random.choices((self.aim[1], ICMP if source.version == 4 else ICMP6, 47), (20, 1, 1))[0]
        make = {TCP: self.tcp, UDP: self.udp}.get(kind, self.other)
        l4, pieces, at, step = make(source, destination, data), [], 0, self.random.choice((512, 1024, 1440, 1480))
        while at < len(l4):
            size = min(len(l4) - at, self.random.randrange(24, step) // 8 * 8 + 8)
            pieces.append((at, size))
            at += size
        if self.rarely(0.1):
            pieces.pop(self.random.randrange(len(pieces)))
        if pieces and self.rarely(0.15):
            at, size = self.random.choice(pieces)
            pieces.append((max(at - self.random.choice((0, 8)), 0), size))
        if self.rarely(0.6):
            self.random.shuffle(pieces)
        tos, number = self.random.choice((0, 0xb8, 3)), self.random.getrandbits(32)
        word = 0x4000 if self.rarely(0.1) else 0
        for at, size in (pieces or [(0, len(l4))])[:7]:
            more = at + size < len(l4)
            if source.version == 4:
                ip = fix_ipv4(struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + size, number & 0xffff,
                                          word | more << 13 | at // 8, 64, kind, 0, source.packed,
                                          destination.packed) + l4[at:at + size])
            else:
                ip = struct.pack("!IHBB16s16sBBHI", 6 << 28 | tos << 20 | number >> 12, 8 + size, 44, 64, source.packed,
                                 destination.packed, kind, 0, at | more, number) + l4[at:at + size]
            self.waiting.append(self.link(ip, source.version))

    def other(self, _source, _destination, data):
        """SCTP, an echo request, or anything: nobody looks at more than the first bytes."""
        if self.aim[1] == SCTP:
            return struct.pack("!HHII", *self.flow, 1, 0) + data
        return struct.pack("!BBHI", 8, 0, 0, 0) + data

    def damage(self, ip):
        """One byte of the headers changed, or the end cut off."""
        if self.rarely(0.3):
            return ip[:self.random.randrange(20 if ip[0] >> 4 == 4 else 40, len(ip) + 1)]
        at = self.random.randrange(min(len(ip), 64))
        return ip[:at] + bytes((self.random.getrandbits(8),)) + ip[at + 1:]
