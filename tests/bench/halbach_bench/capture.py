# SPDX-License-Identifier: BSD-3-Clause
"""A capture of many flows, one packet a flow: for net_pcap here, for Pktgen-DPDK on a generator.

Clients are those of bench_frames.h, 11.0.0.0 and up, in an order that jumps (a step that shares no factor with
their number), so that neighbours in the capture are no neighbours anywhere else.
"""
import struct

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
CLIENTS = 0x0B000000
STEP = 611953  # prime
CRC = 4  # part of the size of a frame, not of a capture
IMIX = [64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64]  # 7 : 4 : 1


class Target:
    """Where packets go: the VIP as a number, its port, the MAC address of the balancer, and what they are."""

    def __init__(self, vip=0xC000020A, port=80, mac=b"\2\0\0\0\0\x10", udp=False, flags=0x10):
        self.vip, self.port, self.mac, self.udp, self.flags = vip, port, mac, udp, flags


def packet(client, size=64, target=Target()):
    length = size - CRC - 14
    source = CLIENTS + client
    ip = [0x4500, length, 0, 0x4000, 0x4011 if target.udp else 0x4006, 0, source >> 16, source & 0xFFFF,
          target.vip >> 16, target.vip & 0xFFFF]
    total = sum(ip)
    total = (total & 0xFFFF) + (total >> 16)
    ip[5] = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    if target.udp:
        l4 = struct.pack(">HHHH", 1024 + client % 60000, target.port, length - 20, 0)
    else:
        l4 = struct.pack(">HHIIBBHHH", 1024 + client % 60000, target.port, 0, 0, 0x50, target.flags, 0xFF00, 0, 0)
    head = struct.pack(">6s6sH10H", target.mac, b"\2\0\0\0\0\x20", 0x0800, *ip) + l4
    return head + bytes(size - CRC - len(head))


def write(path, flows, progress=lambda share: None, size=64, target=Target()):
    """`size` is a number of bytes, CRC included, or "imix"."""
    sizes = IMIX if size == "imix" else [size]
    step = STEP if flows % STEP else 1
    with open(path, "wb") as out:
        out.write(HEADER)
        client = 0
        for number in range(flows):
            data = packet(client, sizes[number % len(sizes)], target)
            out.write(struct.pack("<IIII", 0, 0, len(data), len(data)) + data)
            client = (client + step) % flows
            if number % 100000 == 0:
                progress(number / flows)
