# SPDX-License-Identifier: BSD-3-Clause
"""
rules_fragment.py: which fragments belong together, and which may not be there. RFC 791, RFC 1858, RFC 5722, and
docs/packets.md, "Fragments".
"""


class Datagram:
    def __init__(self):
        self.pieces, self.end, self.bad = [], None, False
        self.ports = None  # of the first fragment, with its protocol
        self.held = []

    def refuses(self, fragment):
        """Why a fragment may not go on, "" when it may. RFC 8200, section 4.5: fragments that overlap end the whole
        datagram, but those that the network has doubled are dropped alone. Doubled is what brings no new byte."""
        _, start, end, last = fragment
        if self.bad:
            return "fragment_refused"
        furthest = max((e for _, e in self.pieces), default=0)
        if self.end is None:
            self.bad = last and furthest > end
        else:
            self.bad = end != self.end if last else end >= self.end
        new = set(range(start, end, 8)) - set().union(*(range(s, e, 8) for s, e in self.pieces))
        if not self.bad and not new:
            return "fragment_duplicate"
        self.bad = self.bad or len(new) != -(-(end - start) // 8)
        if self.bad:
            return "fragment_overlap"
        self.pieces.append((start, end))
        self.end = end if last else self.end
        return ""

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
