#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""accept.py PORT: accepts TCP connections on any address, IPv4 and IPv6, and closes them. For checks."""
import socket
import sys

with socket.create_server(("", int(sys.argv[1])), family=socket.AF_INET6, backlog=8192, dualstack_ipv6=True) as server:
    while True:
        server.accept()[0].close()
