# SPDX-License-Identifier: BSD-3-Clause
"""
wire.py: the bytes of headers, as RFCs say, and the few addresses that drive.c makes up.
"""
import ipaddress
import struct

GATEWAY_MAC = bytes.fromhex("020000000001")
OWN_MAC = bytes.fromhex("020000000010")
SOURCE4, SOURCE6 = ipaddress.ip_address("198.51.100.10"), ipaddress.ip_address("2001:db8:0:1::10")
MTU = 1500
TCP, UDP, SCTP, ICMP, ICMP6, UDP_LITE, GRE = 6, 17, 132, 1, 58, 136, 47
PROTOCOLS = {"tcp": TCP, "udp": UDP, "sctp": SCTP}


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


def link(ip):
    """A frame to the backends: all of them are reached through one port."""
    return GATEWAY_MAC + OWN_MAC + struct.pack("!H", 0x0800 if ip[0] >> 4 == 4 else 0x86dd) + ip


def fix_ipv4(ip):
    """`ip` with its header's checksum made anew."""
    header = (ip[0] & 15) * 4
    return ip[:10] + struct.pack("!H", checksum(ip[:10] + bytes(2) + ip[12:header])) + ip[12:]


def pseudo_header(source, destination, size, protocol):
    """RFC 793, section 3.1; RFC 8200, section 8.1: the same sum for both families."""
    return source.packed + destination.packed + struct.pack("!II", size, protocol)


def udp_packet(source, destination, ports, data, summed):
    header = struct.pack("!HHHH", *ports, 8 + len(data), 0)
    if summed:
        value = checksum(pseudo_header(source, destination, 8 + len(data), UDP) + header + data) or 0xffff
        header = header[:6] + struct.pack("!H", value)
    return header + data


def cut_ipv4(ip, mtu):
    """RFC 791, section 3.2, the fragmentation procedure: the largest pieces that fit. Options go along with the later
    ones only if they say so."""
    header = (ip[0] & 15) * 4
    word, options, data, pieces = struct.unpack("!H", ip[6:8])[0], ip[20:header], ip[header:], []
    start = word & 0x1fff
    while True:
        last = 20 + len(options) + len(data) <= mtu
        size = len(data) if last else (mtu - 20 - len(options)) // 8 * 8
        flags = word & 0xe000 | (0 if last else 0x2000)
        pieces.append(fix_ipv4(bytes((0x40 | (20 + len(options)) // 4,)) + ip[1:2] + struct.pack(
            "!H", 20 + len(options) + size) + ip[4:6] + struct.pack("!H", flags | start) + ip[8:20] + options +
            data[:size]))
        if last:
            return pieces
        options = options if len(pieces) > 1 else copied_options(options)
        data, start = data[size:], start + size // 8


def copied_options(options):
    """RFC 791, section 3.1: those whose first bit is set."""
    kept, at = b"", 0
    while at < len(options) and options[at] != 0:
        size = 1 if options[at] == 1 else options[at + 1]
        if options[at] & 0x80:
            kept += options[at:at + size]
        at += size
    return kept + bytes(-len(kept) % 4)


def cut_ipv6(ip, mtu, number):
    """RFC 8200, section 4.5, of a packet without extension headers."""
    data, pieces, size = ip[40:], [], (mtu - 48) // 8 * 8
    for start in range(0, len(data), size):
        piece, more = data[start:start + size], start + size < len(data)
        pieces.append(ip[:4] + struct.pack("!HBB", 8 + len(piece), 44, ip[7]) + ip[8:40] +
                      struct.pack("!BBH", ip[6], 0, start | more) + number + piece)
    return pieces
