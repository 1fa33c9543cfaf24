#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A control that sends damaged generations, written from dataplane/api/halbach/ alone.

  bad_control.py SOCKET

Says hello, takes the generation that the dataplane serves, and publishes it again damaged in many ways. Prints one line
of JSON for each: {"case": ..., "expected": REASON, "reason": REASON, "serving": NUMBER, "text": ...}. Ends with the same
generation undamaged, which must be accepted.
"""
import array
import ctypes
import fcntl
import json
import mmap
import os
import socket
import struct
import sys

PROTOCOL_MAGIC, PROTOCOL_VERSION = 0x504C4248, 3
REFUSED, HELLO, HELLO_REPLY, PUBLISH, PUBLISH_REPLY = 1, 2, 3, 4, 5
SEALS = 0x1 | 0x2 | 0x4 | 0x8  # F_SEAL_SEAL, _SHRINK, _GROW, _WRITE
F_ADD_SEALS = 1033
REASONS = ("NONE NO_FD SEALS SIZE MAGIC VERSION CHECKSUM SECTION NAME SETTINGS SERVICE SERVICE_DUPLICATE PREFIX QUIC "
           "SOURCE POOL_INDEX BACKEND REWRITE TABLE_INDEX TABLE TABLE_DIGEST TABLE_UNKNOWN SLOT PREVIOUS NO_MEMORY").split()
# Offsets in struct hb_generation_header.
TOTAL_SIZE, CHECKSUM, NUMBER = 16, 24, 32
SERVICES, POOLS, BACKENDS, TABLES = 120, 136, 152, 168
ECHO = 256 + 32  # in the settings at the end

xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def message(kind, sequence, body):
    return struct.pack("<IHHII", PROTOCOL_MAGIC, PROTOCOL_VERSION, kind, 16 + len(body), sequence) + body


def receive(connection):
    data, ancillary, _, _ = connection.recvmsg(8192, socket.CMSG_SPACE(8 * 4))
    fds = array.array("i")
    for _, _, payload in ancillary:
        fds.frombytes(payload)
    return struct.unpack_from("<IHHII", data)[2], data[16:], list(fds)


def seal(blob):
    """Makes the checksum right, so that the checks behind it are reached."""
    blob[CHECKSUM:CHECKSUM + 8] = bytes(8)
    struct.pack_into("<Q", blob, CHECKSUM, xxhash.XXH3_64bits(bytes(blob), len(blob)))


def put(form, blob, offset, value):
    struct.pack_into(form, blob, offset, value)


def section(blob, where):
    return struct.unpack_from("<QII", blob, where)


def cases(good):
    """Yields (name, expected reason, blob, seals or None for no file descriptor)."""
    def damaged(form, offset, value, checksum=True):
        blob = bytearray(good)
        put(form, blob, offset, value)
        if checksum:
            seal(blob)
        return blob

    def cut(size):
        blob = bytearray(good[:size])
        if size >= TOTAL_SIZE + 8:
            put("<Q", blob, TOTAL_SIZE, size)
            seal(blob)
        return blob

    size = len(good)
    services, pools, backends, tables = (section(good, where)[0] for where in (SERVICES, POOLS, BACKENDS, TABLES))
    # A table that the dataplane held already was only named; the damage needs one that was carried.
    carried = (struct.unpack_from("<Q", good, tables + 32 * i + 16)[0] for i in range(section(good, TABLES)[1]))
    slots = next(offset for offset in carried if offset)
    longer = bytearray(good) + bytes(64)
    seal(longer)
    yield "no file descriptor", "NO_FD", bytearray(good), None
    yield "not sealed", "SEALS", bytearray(good), 0
    yield "not sealed against writing", "SEALS", bytearray(good), SEALS & ~0x8
    yield "empty", "SIZE", bytearray(), SEALS
    yield "truncated inside the header", "SIZE", bytearray(good[:100]), SEALS
    yield "truncated behind the header", "SECTION", cut(384), SEALS
    yield "truncated inside a table", "TABLE", cut(size - 64), SEALS
    yield "longer than its header says", "SIZE", longer, SEALS
    yield "wrong magic", "MAGIC", damaged("<Q", 0, 0x1122334455667788), SEALS
    yield "wrong version", "VERSION", damaged("<H", 8, 99), SEALS
    yield "wrong checksum", "CHECKSUM", damaged("<Q", CHECKSUM, 0, checksum=False), SEALS
    yield "a bit flipped in a table", "CHECKSUM", damaged("<B", slots + 5, good[slots + 5] ^ 1, checksum=False), SEALS
    yield "misaligned section", "SECTION", damaged("<Q", SERVICES, services + 8), SEALS
    yield "section outside", "SECTION", damaged("<Q", POOLS, 1 << 40), SEALS
    yield "offset that wraps", "SECTION", damaged("<Q", BACKENDS, (1 << 64) - 64), SEALS
    yield "too many records", "SECTION", damaged("<I", TABLES + 8, 0xFFFFFFFF), SEALS
    yield "empty name", "NAME", damaged("<Q", services + 128, 0), SEALS
    yield "echo 9", "SETTINGS", damaged("<B", ECHO, 9), SEALS
    yield "service of family 5", "SERVICE", damaged("<B", services + 19, 5), SEALS
    yield "service names pool 999", "POOL_INDEX", damaged("<I", services + 32, 999), SEALS
    yield "backend id 0", "BACKEND", damaged("<I", backends, 0), SEALS
    yield "rewrite of 95 bytes", "REWRITE", damaged("<B", backends + 32, 95), SEALS
    yield "rewrite to port 77", "REWRITE", damaged("<H", backends + 36, 77), SEALS
    yield "pool names table 999", "TABLE_INDEX", damaged("<I", pools, 999), SEALS
    yield "table of 3 slots", "TABLE", damaged("<I", tables + 24, 3), SEALS
    yield "slot changed, digest not", "TABLE_DIGEST", damaged("<H", slots, 4711), SEALS
    yield "nothing wrong", "NONE", damaged("<Q", NUMBER, struct.unpack_from("<Q", good, NUMBER)[0] + 1), SEALS


def publish(connection, sequence, blob, seals):
    body = struct.pack("<Q", struct.unpack_from("<Q", blob, NUMBER)[0] if len(blob) >= NUMBER + 8 else 1)
    ancillary, memfd = [], -1
    if seals is not None:
        memfd = os.memfd_create("generation", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.write(memfd, blob)
        fcntl.fcntl(memfd, F_ADD_SEALS, seals)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memfd]))]
    connection.sendmsg([message(PUBLISH, sequence, body)], ancillary)
    if memfd >= 0:
        os.close(memfd)
    kind, reply, _ = receive(connection)
    if kind != PUBLISH_REPLY:
        sys.exit(f"bad_control: a message of type {kind} came instead of PUBLISH_REPLY: {reply[8:].rstrip(bytes(1))}")
    reason, _, _, number = struct.unpack_from("<IIQQ", reply)
    return reason, number, reply[40:].split(b"\0")[0].decode()


def main():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(10)
    connection.connect(sys.argv[1])
    connection.send(message(HELLO, 1, struct.pack("<II64s", os.getpid(), 0, b"bad_control")))
    kind, reply, fds = receive(connection)
    if kind != HELLO_REPLY or len(fds) != 2:
        sys.exit(f"bad_control: the dataplane has no generation to damage: message type {kind}, {reply[8:60]}")
    with mmap.mmap(fds[1], 0, prot=mmap.PROT_READ) as mapping:
        good = bytes(mapping)
    for sequence, (name, expected, blob, seals) in enumerate(cases(good), 2):
        reason, number, text = publish(connection, sequence, blob, seals)
        print(json.dumps({"case": name, "expected": expected, "reason": REASONS[reason], "serving": number, "text": text}))


if __name__ == "__main__":
    main()
