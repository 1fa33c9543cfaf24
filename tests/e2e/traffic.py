#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Traffic that checks itself, for the end-to-end tests and the demo. Python standard library only.

  traffic.py open URL... --rate N          a new connection for each request, N a second
  traffic.py hold URL... --count N --rate R  N connections that stay open, R requests a second on each
  traffic.py udp HOST:PORT... --count N --rate R   N flows, R datagrams a second on each
  traffic.py serve --name NAME --address A... --port P   a UDP server that names itself and echoes
  traffic.py outage LOG --since T          when requests of `open` or `udp` failed, from their log

The servers are nginx with a location /echo that answers "NAME ARGUMENTS", and `serve`, which answers
"NAME DATAGRAM". Every request carries its connection's and its own number, so an answer that is lost, doubled,
late from an earlier request or from another backend than the connection's first is seen.

`open`, `hold` and `udp` run until SIGTERM or SIGINT, or for --seconds; `open` and `udp` also end after --requests. Then
they wait for answers under way and print one line of JSON. With --log each request is also a line there, as it ends:
  START DURATION ok|failed BACKEND DETAIL     START in seconds since 1970
and the line "ready" once every connection or flow had its first answer. `hold` writes each connection's first request
and the one that broke it.
"""
import argparse
import asyncio
import collections
import json
import signal
import socket
import sys
import time
import urllib.parse


class Log:
    """The requests of a run as lines of a file, flushed at once: the scripts read it while it grows."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1) if path else None

    def request(self, start, ok, backend, detail="", duration=None):
        if self.file:
            if duration is None:
                duration = time.time() - start
            self.file.write(f"{start:.4f} {duration:.4f} {'ok' if ok else 'failed'} "
                            f"{backend or '-'} {detail or '-'}\n")

    def ready(self):
        if self.file:
            self.file.write("ready\n")


def problem_name(error):
    """A word for what went wrong, the same whatever the layer that noticed."""
    names = {asyncio.TimeoutError: "timeout", TimeoutError: "timeout",
             ConnectionRefusedError: "refused", ConnectionResetError: "reset",
             BrokenPipeError: "reset", asyncio.IncompleteReadError: "closed"}
    return names.get(type(error), str(error).replace(" ", "_") or type(error).__name__)


def stop_event(seconds):
    """Set by SIGTERM and SIGINT, or when the time is over."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if seconds:
        loop.call_later(seconds, stop.set)
    return stop


async def pause(stop, seconds):
    """Waits; returns False when it is time to stop, also to who is late and has nothing to wait for."""
    if seconds <= 0:
        await asyncio.sleep(0)
        return not stop.is_set()
    try:
        await asyncio.wait_for(stop.wait(), seconds)
        return False
    except asyncio.TimeoutError:
        return True


async def request(reader, writer, url, query, close):
    """One GET on an open connection. Returns (backend, what it echoed)."""
    writer.write(f"GET {url.path or '/echo'}?{query} HTTP/1.1\r\nHost: {url.hostname}\r\n"
                 f"Connection: {'close' if close else 'keep-alive'}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status = head.split(" ", 2)[1]
    if status != "200":
        raise RuntimeError(f"status_{status}")
    size = next(int(line.split(":")[1]) for line in head.split("\r\n")
                if line.lower().startswith("content-length:"))
    body = (await reader.readexactly(size)).decode().split()
    return body[0], body[1] if len(body) > 1 else ""


# ---- open: is a new connection served? ------------------------------------------------------------


async def open_once(url, number, timeout, log, result):
    start = time.time()
    writer = None
    try:
        async def attempt():
            nonlocal writer
            reader, writer = await asyncio.open_connection(url.hostname, url.port or 80)
            return await request(reader, writer, url, f"n{number}", close=True)
        backend, echoed = await asyncio.wait_for(attempt(), timeout)
        if echoed != f"n{number}":
            raise RuntimeError("wrong_answer")
        result["backends"][backend] += 1
        log.request(start, True, backend)
    except (OSError, RuntimeError, EOFError, asyncio.TimeoutError) as error:
        result["failed"] += 1
        result["problems"][problem_name(error)] += 1
        log.request(start, False, None, problem_name(error))
    finally:
        if writer:
            writer.close()
    result["requests"] += 1


async def run_open(options):
    stop, log = stop_event(options.seconds), Log(options.log)
    urls = [urllib.parse.urlsplit(url) for url in options.target]
    result = {"requests": 0, "failed": 0, "backends": collections.Counter(),
              "problems": collections.Counter()}
    tasks, number, begin = set(), 0, time.monotonic()
    log.ready()
    while await pause(stop, begin + number / options.rate - time.monotonic()):
        task = asyncio.create_task(open_once(urls[number % len(urls)], number, options.timeout, log,
                                             result))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
        if options.requests and number >= options.requests:
            break
    if tasks:
        await asyncio.wait(tasks)
    return result


# ---- hold: does an established connection stay where it is? ----------------------------------------


async def hold_one(url, number, options, stop, log, result, first_answer):
    """One connection: its requests go out one after another until it is time to stop or it breaks."""
    backend, sent, writer, start = None, 0, None, time.time()
    try:
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(url.hostname, url.port or 80), options.timeout)
        while True:
            start = time.time()
            query = f"c{number}r{sent}"
            name, echoed = await asyncio.wait_for(request(reader, writer, url, query, close=False),
                                                  options.timeout)
            sent += 1
            result["requests"] += 1
            result["slowest_s"] = max(result["slowest_s"], round(time.time() - start, 3))
            if echoed != query:
                raise RuntimeError(f"sent_{query}_got_{echoed}")
            if backend is None:
                backend = name
                result["backends"][name] += 1
                log.request(start, True, name, "first")
                first_answer()
            elif backend != name:
                result["moved"] += 1
                raise RuntimeError(f"moved_from_{backend}_to_{name}")
            if not await pause(stop, 1 / options.rate):
                break
    except (OSError, RuntimeError, EOFError, asyncio.TimeoutError) as error:
        result["broken"].append({"connection": number, "backend": backend, "requests": sent,
                                 "time": round(start, 3), "problem": problem_name(error)})
        log.request(start, False, backend, problem_name(error))
        if backend is None:
            first_answer()
    finally:
        if writer:
            writer.close()


async def run_hold(options):
    stop, log = stop_event(options.seconds), Log(options.log)
    urls = [urllib.parse.urlsplit(url) for url in options.target]
    result = {"connections": options.count, "requests": 0, "moved": 0, "slowest_s": 0.0,
              "backends": collections.Counter(), "broken": []}
    waiting = options.count

    def first_answer():
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            log.ready()

    await asyncio.gather(*(hold_one(urls[i % len(urls)], i, options, stop, log, result, first_answer)
                           for i in range(options.count)))
    result["failed"] = len(result["broken"])
    return result


# ---- udp: is every datagram answered exactly once? -------------------------------------------------


class Flow(asyncio.DatagramProtocol):
    """One UDP flow. `sent` has the start of each datagram that is not answered yet."""

    def __init__(self, number, log, result, first_answer):
        self.number, self.log, self.result, self.first_answer = number, log, result, first_answer
        self.sent, self.next, self.backend, self.transport = {}, 0, None, None

    def connection_made(self, transport):
        self.transport = transport

    def send(self):
        self.sent[self.next] = time.time()
        self.transport.sendto(f"{self.number}.{self.next}".encode())
        self.next += 1
        self.result["sent"] += 1

    def datagram_received(self, data, address):
        backend, identity = data.decode().split()
        flow, number = (int(part) for part in identity.split("."))
        start = self.sent.pop(number, None)
        if flow != self.number or number >= self.next:
            self.result["foreign"] += 1
        elif start is None:
            self.result["duplicates"] += 1
        else:
            self.result["answered"] += 1
            self.log.request(start, True, backend)
        if self.backend is None:
            self.backend = backend
            self.result["backends"][backend] += 1
            self.first_answer()
        elif self.backend != backend:
            self.result["moved"] += 1
            self.backend = backend

    def error_received(self, error):
        self.result["problems"][problem_name(error)] += 1

    def finish(self):
        for start in self.sent.values():
            self.log.request(start, False, self.backend, "lost", duration=0.1)
        self.result["lost"] += len(self.sent)
        self.transport.close()


async def run_udp(options):
    stop, log = stop_event(options.seconds), Log(options.log)
    result = {"flows": options.count, "sent": 0, "answered": 0, "lost": 0, "duplicates": 0, "foreign": 0,
              "moved": 0, "backends": collections.Counter(), "problems": collections.Counter()}
    targets = [urllib.parse.urlsplit("//" + target) for target in options.target]
    waiting = options.count

    def first_answer():
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            log.ready()

    flows = []
    for i in range(options.count):
        target = targets[i % len(targets)]
        _, flow = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda i=i: Flow(i, log, result, first_answer),
            remote_addr=(target.hostname, target.port))
        flows.append(flow)
    turn, begin = 0, time.monotonic()
    while await pause(stop, begin + turn / (options.rate * options.count) - time.monotonic()):
        flows[turn % len(flows)].send()
        turn += 1
        if options.requests and turn >= options.requests:
            break
    deadline = time.monotonic() + options.timeout
    while any(flow.sent for flow in flows) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    for flow in flows:
        flow.finish()
    result["failed"] = result["lost"] + result["duplicates"] + result["foreign"]
    return result


def run_serve(options):
    """Answers from the address that was asked: with direct server return that is the VIP, so each address
    has its own socket."""
    import selectors
    selector = selectors.DefaultSelector()
    for address in options.address:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        udp.bind((address, options.port))
        selector.register(udp, selectors.EVENT_READ)
    name = options.name.encode()
    while True:
        for key, _ in selector.select():
            data, peer = key.fileobj.recvfrom(65535)
            key.fileobj.sendto(name + b" " + data, peer)


def run_outage(options):
    """Reads a log: how many requests began in the time asked for, how many failed, and for how long."""
    requests, failed, ends, until = 0, [], [], options.until or float("inf")
    problems, backends = collections.Counter(), collections.Counter()
    with open(options.log_file) as log:
        for line in log:
            fields = line.split()
            if len(fields) < 5:
                continue
            under_way = float(fields[1]) if options.under_way and fields[2] == "failed" else 0
            if float(fields[0]) + under_way < options.since or float(fields[0]) >= until:
                continue
            requests += 1
            if fields[2] == "failed":
                failed.append(float(fields[0]))
                ends.append(float(fields[0]) + float(fields[1]))
                problems[fields[4]] += 1
            else:
                backends[fields[3]] += 1
    # From the first failure to the last; a lone failure counts as one tick of the clock of requests.
    lasted = max(failed) - min(failed) if failed else 0.0
    return {"requests": requests, "failed": len(failed), "outage_s": round(lasted, 3),
            "first_s": round(min(failed) - options.since, 3) if failed else None,
            "last_s": round(max(failed) - options.since, 3) if failed else None,
            # Is there a moment at which all of them were under way?
            "at_once": not failed or max(failed) <= min(ends),
            "problems": problems, "backends": backends}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    for mode in ("open", "hold", "udp"):
        sub = modes.add_parser(mode)
        sub.add_argument("target", nargs="+")
        sub.add_argument("--rate", type=float, default=10)
        sub.add_argument("--count", type=int, default=1)
        sub.add_argument("--requests", type=int, default=0)
        sub.add_argument("--seconds", type=float, default=0)
        sub.add_argument("--timeout", type=float, default={"hold": 15, "udp": 5}.get(mode, 2))
        sub.add_argument("--log")
    serve = modes.add_parser("serve")
    serve.add_argument("--name", required=True)
    serve.add_argument("--address", action="append", required=True)
    serve.add_argument("--port", type=int, required=True)
    outage = modes.add_parser("outage")
    outage.add_argument("log_file")
    outage.add_argument("--since", type=float, required=True)
    outage.add_argument("--until", type=float)
    outage.add_argument("--under-way", action="store_true",
                        help="also those that began before --since, were under way then, and failed")
    return parser.parse_args()


def main():
    options = parse_arguments()
    if options.mode == "serve":
        run_serve(options)
    elif options.mode == "outage":
        print(json.dumps(run_outage(options)))
    else:
        run = {"open": run_open, "hold": run_hold, "udp": run_udp}[options.mode]
        print(json.dumps(asyncio.run(run(options))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
