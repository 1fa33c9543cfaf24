# SPDX-License-Identifier: BSD-3-Clause
"""
rules_fragment.py: which fragments belong together, and which may not be there. RFC 791, RFC 1858, RFC 5722, and
docs/packets.md, "Fragments".
"""


class Datagram:
    def __init__(self):
        self.pieces, self.end = [], None
        self.ports = None  # of the first fragment, with its protocol
        self.held = []

    def takes(self, fragment):
        """False for what overlaps something, or is beyond the end."""
        _, start, end, last = fragment
        if any(start < e and s < end for s, e in self.pieces):
            return False
        if self.end is not None and (last or end > self.end) or last and any(e > end for _, e in self.pieces):
            return False
        self.pieces.append((start, end))
        if last:
            self.end = end
        return True

    def is_complete(self):
        return self.end is not None and sum(e - s for s, e in self.pieces) == self.end


class Datagrams:
    """Those that are not complete."""

    def __init__(self):
        self.known = {}

    def find(self, fragment):
        """The one that it is a part of; a new one when all of the one before is there."""
        if fragment[0] not in self.known or self.known[fragment[0]].is_complete():
            self.known[fragment[0]] = Datagram()
        return self.known[fragment[0]]

    def forget_all(self):
        held = sum(len(datagram.held) for datagram in self.known.values())
        self.known = {}
        return held
