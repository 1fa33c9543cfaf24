#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints the client's address that TCP options 254 and 28 carry, a line each: KIND ADDRESS PORT. To a file; "ready"
first. Reads all packets of this network namespace (AF_PACKET), until it is ended."""
import socket
import struct
import sys


def tcp_header(frame):
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == 0x0800 and frame[23] == 6:
        return frame[14 + (frame[14] & 15) * 4:]
    if kind == 0x86DD and frame[20] == 6:
        return frame[54:]
    return None


def options(tcp):
    at, end = 20, (tcp[12] >> 4) * 4
    while at < end and tcp[at] != 0:
        if tcp[at] == 1:
            at += 1
            continue
        size = tcp[at + 1]
        yield tcp[at], tcp[at + 2:at + size]
        at += size


def main():
    with open(sys.argv[1], "a", buffering=1) as out:
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        out.write("ready\n")
        while True:
            frame, _ = wire.recvfrom(65536)
            tcp = tcp_header(frame)
            for kind, value in options(tcp) if tcp else ():
                if kind in (254, 28):
                    family = socket.AF_INET if len(value) == 6 else socket.AF_INET6
                    out.write(f"{kind} {socket.inet_ntop(family, value[2:])} {struct.unpack('!H', value[:2])[0]}\n")


main()
