# SPDX-License-Identifier: BSD-3-Clause
"""
rules_tunnel.py: the bytes that leave to a backend, in every forwarding mode. From docs/forwarding.md and the RFCs.

Some fields are the dataplane's own choice: they are read from what it sent, must be in their range, and must be the
same for all packets of a flow. The packet around them is then made here, checksums and all.
"""
import ipaddress
import struct

from wire import (GRE, ICMP6, MTU, SOURCE4, SOURCE6, TCP, UDP, checksum, cut_ipv4, cut_ipv6, fix_ipv4, link,
                  udp_packet)

PORTS = {"gue": 6080, "vxlan": 4789}
ADDED = {"ipip": 0, "gre": 4, "gue": 12, "vxlan": 30, "l2": 0, "l3dsr": 0}


class Choices:
    """What the dataplane chose for each flow, and the last number of a tunnel packet."""

    def __init__(self):
        self.of_flow, self.identification = {}, None
        self.values = {}  # of each kind

    def keep(self, what, flow, value, allowed):
        """The flow's value: the one seen before, else this one if it is allowed; None never fits."""
        known = self.of_flow.get((what, flow))
        if known is None and allowed:
            known = self.of_flow[what, flow] = value
            self.values.setdefault(what, set()).add(value)
        return known

    def next_identification(self, value):
        """They count up."""
        self.identification = value if self.identification is None else (self.identification + 1) % 65536
        return self.identification

    def complaints(self):
        """Flows are spread: no choice is the same for all."""
        return [f"{len(self.values[what])} values of {what} for all flows"
                for what, least in (("port", 100), ("label", 100), ("source4", 50), ("source6", 50))
                if what in self.values and len(self.values[what]) < least]


class Tunnel:
    """One backend's."""

    def __init__(self, config, pool, backend, choices):
        self.mode = pool.get("forwarding", "ipip")
        self.options = pool.get(self.mode) or {}
        self.fragment = pool.get("fragment", "drop")
        self.to = ipaddress.ip_address(backend["address"])
        self.choices, self.source, self.spread = choices, SOURCE4 if self.to.version == 4 else SOURCE6, None
        tunnel, suffix = config.get("tunnel") or {}, "6" if self.to.version == 6 else ""
        if "source" + suffix in tunnel:
            self.source = ipaddress.ip_address(tunnel["source" + suffix])
        if "source_prefix" + suffix in tunnel and self.mode in ("ipip", "gre"):
            self.spread = ipaddress.ip_network(tunnel["source_prefix" + suffix])
        self.added = ADDED[self.mode] + (0 if self.is_direct() else 20 if self.to.version == 4 else 40)
        if self.mode == "gue" and self.options.get("variant", 0) == 1:
            self.added -= 4
        self.room = MTU - self.added

    def is_direct(self):
        return self.mode in ("l2", "l3dsr")

    def frames(self, ip, df, flow):
        """How many frames, and a function that makes of those that were sent those that had to be. For a packet that
        is longer than `room` only if it may be cut."""
        whole = len(ip) <= self.room
        if self.is_direct():
            packet = self.direct(ip, flow)
            packets = [packet] if whole else cut_ipv4(packet, MTU)
            return len(packets), lambda got: [link(packet) for packet in packets]
        if whole or self.fragment == "inner":
            pieces = [ip] if whole else cut_ipv4(ip, self.room)
            return len(pieces), lambda got: [link(self.wrap(piece, df, flow, frame[14:]))
                                             for piece, frame in zip(pieces, got)]
        size, step = (len(ip) + self.added - 20, 1480) if self.to.version == 4 else (len(ip) + self.added - 40, 1448)
        skip = 0 if self.to.version == 4 else 8  # the fragment header
        return -(-size // step), lambda got: [link(piece) for piece in self.cut_tunnel(
            self.wrap(ip, df, flow, got[0][14:], skip), got[0][14:])]

    @staticmethod
    def cut_tunnel(packet, got):
        return cut_ipv4(packet, MTU) if packet[0] >> 4 == 4 else cut_ipv6(packet, MTU, got[44:48])

    # ---- tunnels ----

    def wrap(self, ip, df, flow, got, skip=0):
        """The tunnel packet. `got`: what was sent, from its IP header, with `skip` more bytes behind one of IPv6."""
        flow, version = (flow, self.to), ip[0] >> 4
        tos = ip[1] if version == 4 else struct.unpack("!H", ip[:2])[0] >> 4 & 0xff
        source = self.choose_source(flow, got)
        l4 = got[20:] if self.to.version == 4 else got[40 + skip:]
        protocol, payload = self.payload(ip, version, source, flow, l4)
        if self.to.version == 4:
            number = 0 if df else self.choices.next_identification(struct.unpack("!H", got[4:6])[0])
            return fix_ipv4(struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + len(payload), number, 0x4000 if df else 0, 64,
                                        protocol, 0, source.packed, self.to.packed) + payload)
        label = self.choices.keep("label", flow, struct.unpack("!I", got[:4])[0] & 0xfffff, True)
        return struct.pack("!IHBB16s16s", 6 << 28 | tos << 20 | label, len(payload), protocol, 64, source.packed,
                           self.to.packed) + payload

    def choose_source(self, flow, got):
        if self.spread is None:
            return self.source
        seen = ipaddress.ip_address(got[12:16] if self.to.version == 4 else got[8:24])
        return self.choices.keep(f"source{seen.version}", flow, seen, seen in self.spread) or self.spread[0]

    def payload(self, ip, version, source, flow, l4):
        """Protocol and all that is behind the outer IP header."""
        inside, kind = (4, 0x0800) if version == 4 else (41, 0x86dd)
        if self.mode == "ipip":
            return inside, ip  # RFC 2003, RFC 2473, RFC 4213
        if self.mode == "gre":
            return GRE, struct.pack("!HH", 0, kind) + ip  # RFC 2784
        if self.mode == "vxlan":  # RFC 7348, section 5
            data = struct.pack("!II", 0x08000000, self.options["vni"] << 8) + self.mac("mac", self.to) + \
                self.mac("source_mac", source) + struct.pack("!H", kind) + ip
        elif self.options.get("variant", 0) == 0:
            data = struct.pack("!BBH", 0, inside, 0) + ip  # draft-ietf-intarea-gue, section 3
        else:
            data = ip  # section 4: the version of IP is the variant
        summed = self.options.get("checksum") if self.to.version == 4 else not self.options.get("zero_checksum6")
        seen = struct.unpack("!H", l4[:2])[0]
        port = self.choices.keep("port", flow, seen, seen >= 49152) or 49152
        return UDP, udp_packet(source, self.to, (port, self.options.get("port", PORTS[self.mode])), data, summed)

    def mac(self, key, address):
        if key in self.options:
            return bytes.fromhex(self.options[key].replace(":", ""))
        return b"\x02\x48" + address.packed[-4:]

    # ---- direct ----

    def direct(self, ip, flow):
        """The packet itself; l3dsr: with another destination and DSCP."""
        if self.mode == "l2":
            return ip
        if ip[0] >> 4 == 4:
            header = (ip[0] & 15) * 4
            later = struct.unpack("!H", ip[6:8])[0] & 0x1fff
            l4 = ip[header:] if later else self.move_sum(ip[header:], flow[4], ip[16:20])
            return fix_ipv4(ip[:1] + self.mark(ip[1]) + ip[2:16] + self.to.packed + ip[20:header] + l4)
        at, number, later = 40, ip[6], False
        while number in (0, 43, 44, 60):
            later = later or number == 44 and struct.unpack("!H", ip[at + 2:at + 4])[0] & 0xfff8
            number, at = ip[at], at + (8 if number == 44 else 8 + ip[at + 1] * 8)
            if later:
                break
        l4 = ip[at:] if later else self.move_sum(ip[at:], flow[4], ip[24:40])
        word = struct.unpack("!I", ip[:4])[0]
        tos = self.mark(word >> 20 & 0xff)[0]
        return struct.pack("!I", word & 0xf00fffff | tos << 20) + ip[4:24] + self.to.packed + ip[40:at] + l4

    def mark(self, tos):
        return bytes((self.options["dscp"] << 2 | tos & 3,))

    def move_sum(self, l4, protocol, destination):
        """RFC 1624, equation 3: what was right is right for the new destination, and what was wrong stays wrong."""
        at = {TCP: 16, UDP: 6, ICMP6: 2}.get(protocol)
        if at is None:
            return l4
        old = struct.unpack("!H", l4[at:at + 2])[0]
        if protocol == UDP and old == 0:
            return l4
        inverted = bytes(byte ^ 255 for byte in destination)
        new = checksum(struct.pack("!H", ~old & 0xffff) + inverted + self.to.packed)
        if protocol == UDP and new == 0:
            new = 0xffff
        return l4[:at] + struct.pack("!H", new) + l4[at + 2:]
