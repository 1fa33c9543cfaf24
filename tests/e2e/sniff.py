#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which kinds of tunnel packets pass an interface. Python standard library only.

  sniff.py IFACE --seconds N [--until KIND...]

Counts what is sent and received there for N seconds, or until every KIND was seen, and prints one line of JSON:
{"ipip4": 12, "gue0-6": 3, ...}. A kind is the tunnel and the family of its outer header; TCP and UDP packets without a
tunnel are "plain4" and "plain6", with "-dscpN" when they are marked. The rest is "other": ARP, ICMP, and what hosts say
of multicast groups, which has a DSCP of its own. It fails when a KIND was not seen.
"""
import argparse
import collections
import json
import select
import socket
import sys
import time

GUE_PORT, VXLAN_PORT = 6080, 4789
ETH_P_ALL = 3


def tunnel_of(protocol, rest):
    if protocol in (4, 41):
        return "ipip"
    if protocol == 47:
        return "gre"
    if protocol == 17 and len(rest) > 8:
        port = int.from_bytes(rest[2:4], "big")
        if port == GUE_PORT:
            return "gue0-" if rest[8] >> 4 == 0 else "gue1-"
        if port == VXLAN_PORT:
            return "vxlan"
    return None


def kind_of(frame):
    kind = int.from_bytes(frame[12:14], "big")
    packet = frame[14:]
    if kind == 0x0800 and len(packet) >= 20:
        family, tos = 4, packet[1]
        protocol, rest = packet[9], packet[(packet[0] & 15) * 4:]
    elif kind == 0x86dd and len(packet) >= 40:
        family, tos = 6, (packet[0] << 4 | packet[1] >> 4) & 255
        protocol, rest = packet[6], packet[40:]
    else:
        return "other"
    tunnel = tunnel_of(protocol, rest)
    if tunnel:
        return f"{tunnel}{family}"
    if protocol not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
        return "other"
    return f"plain{family}" + (f"-dscp{tos >> 2}" if tos >> 2 else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("interface")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--until", nargs="*", default=[])
    arguments = parser.parse_args()
    # Nothing is received before it is bound: not from other interfaces.
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.bind((arguments.interface, ETH_P_ALL))
    seen = collections.Counter()
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end and (not arguments.until or set(arguments.until) - set(seen)):
        if select.select([raw], [], [], 0.1)[0]:
            seen[kind_of(raw.recv(2048))] += 1
    print(json.dumps(seen))
    return 1 if set(arguments.until) - set(seen) else 0


if __name__ == "__main__":
    sys.exit(main())
