#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of one UDP flow: an answer, or the error that its socket gets.

  udp_ask.py HOST:PORT [--size N] [--fragment] [--seconds N]

The socket is connected, so ICMP errors that quote its flow come back as errors of its calls; those that quote another
flow do not. Sends the same datagram until something comes, and prints one line:

  answer NAME      the server's name, and the datagram came back whole
  refused          port unreachable
  too_big MTU      fragmentation needed, or packet too big; the path MTU that the kernel has now
  silence
"""
import argparse
import errno
import socket
import sys
import time

IP_MTU, IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_PMTUDISC_DO = 14, 10, 0, 2
IPV6_MTU, IPV6_MTU_DISCOVER = 24, 23


def open_flow(host, port, fragment):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    mode = IP_PMTUDISC_DONT if fragment else IP_PMTUDISC_DO
    if family == socket.AF_INET6:
        udp.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, mode)
    else:
        udp.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, mode)
    udp.connect((host, port))
    udp.settimeout(0.1)
    return udp


def path_mtu(udp):
    if udp.family == socket.AF_INET6:
        return udp.getsockopt(socket.IPPROTO_IPV6, IPV6_MTU)
    return udp.getsockopt(socket.IPPROTO_IP, IP_MTU)


def ask(udp, payload, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            udp.send(payload)
            name, _, echo = udp.recv(65535).partition(b" ")
            if echo == payload:
                return f"answer {name.decode()}"
        except socket.timeout:
            pass
        except ConnectionRefusedError:
            return "refused"
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            return f"too_big {path_mtu(udp)}"
    return "silence"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--fragment", action="store_true", help="let the network cut the datagram")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    host, _, port = options.target.rpartition(":")
    udp = open_flow(host.strip("[]"), int(port), options.fragment)
    print(ask(udp, bytes(i & 0xff for i in range(options.size)), options.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
