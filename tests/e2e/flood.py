#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""flood.py ADDRESS SECONDS: datagrams to a port of a host where nobody listens, for at most that long."""
import socket
import sys
import time

end = time.monotonic() + float(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    while time.monotonic() < end:
        for _ in range(100):
            try:
                sender.sendto(b"flood", (sys.argv[1], 9))
            except OSError:
                pass
        time.sleep(0.005)
