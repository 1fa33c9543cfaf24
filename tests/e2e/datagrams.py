#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Large UDP datagrams, which the kernel sends in fragments, to the lab's UDP servers.

  datagrams.py HOST:PORT --size N --count N [--reversed SOURCE]

Each flow sends a small datagram, then a large one, each again until it is answered or three seconds are over; the answer
names the backend and echoes the datagram. With --reversed the large ones (IPv4 only) are cut here and their fragments
sent by a raw socket, the last one first. Prints one line of JSON.
"""
import argparse
import json
import os
import random
import socket
import struct
import sys
import time

PIECE = 1400  # bytes in a fragment, a multiple of 8


def send_reversed(raw, source, destination, ports, payload):
    """A datagram by hand. The kernel fills in length and checksum of the IP header; UDP's is 0: none."""
    data = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
    identification = random.randrange(1, 65536)
    for start in reversed(range(0, len(data), PIECE)):
        more = 0x2000 if start + PIECE < len(data) else 0
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, identification, more | start // 8, 64, 17, 0,
                             socket.inet_aton(source), socket.inet_aton(destination))
        raw.sendto(header + data[start:start + PIECE], (destination, 0))


def ask(udp, send, payload):
    """Sends until the same bytes come back; returns the backend's name, or None."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        send(payload)
        try:
            while True:
                name, _, echo = udp.recv(65535).partition(b" ")
                if echo == payload:
                    return name.decode()
        except socket.timeout:
            pass
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--reversed", metavar="SOURCE")
    options = parser.parse_args()
    host, _, port = options.target.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) if options.reversed else None
    result = {"small": 0, "large": 0, "same": 0, "backends": []}
    for _ in range(options.count):
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.connect((host, int(port)))
        udp.settimeout(0.3)
        ports = (udp.getsockname()[1], int(port))
        send_large = udp.send
        if raw:
            send_large = lambda payload: send_reversed(raw, options.reversed, host, ports, payload)  # noqa: B023
        small = ask(udp, udp.send, os.urandom(20))
        large = ask(udp, send_large, os.urandom(options.size))
        result["small"] += small is not None
        result["large"] += large is not None
        result["same"] += small is not None and small == large
        if small and small not in result["backends"]:
            result["backends"].append(small)
        udp.close()
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
