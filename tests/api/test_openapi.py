#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/openapi.yaml against the server: each path, method, argument, status and member, both ways.

    test_openapi.py HALBACH-DATAPLANE HALBACH-CONTROL OPENAPI-FILE

Every schema names all members (required, additionalProperties: false), so a member that one side has and the other
has not is an error.
"""
import http.client
import json
import os
import shutil
import sys

from daemons import CONFIG, FULL_NAT, Daemons, Tap, wait_until

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; scripts/deps test installs it")
    sys.exit(77)

# A pool falls under its minimum only when its backends can be reached, and nothing can be by this port:
# tests/unit/test_control_life.c has this one. Nor has a slot an owner to settle from
# (tests/unit/test_control_flush.c), and a flush fails by itself only for lack of memory.
UNSEEN = {("/v1/backends/{name}/drain", "POST", 409), ("/v1/flush", "POST", 409), ("/v1/flush", "POST", 500)}
JUMP = CONFIG.replace("table_size: 251", "table_size: 251\n    algorithm: jump").replace(
    "198.51.100.11", "198.51.100.11, bucket: 0").replace("198.51.100.12", "198.51.100.12, bucket: 1")
SECOND = CONFIG.replace("name: web2, address: 198.51.100.12", "name: web2, address: 198.51.100.12, weight: 3")

RULES = CONFIG + """  - name: hosting
    vip: 203.0.113.0/26
    protocol: sctp
    port: 8000-8999
    pool: web
    affinity: source
    affinity_prefix: 24
    deny: [ 192.168.66.0/24 ]
    new_flows: 5000
    flows: 200000
  - { name: rest, vip: 203.0.113.0/26, protocol: udp, port: any, pool: web }
"""


class Contract:
    def __init__(self, file):
        with open(file) as source:
            self.document = yaml.safe_load(source)
        self.seen = set()
        self.schemas = set()

    def resolve(self, node):
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def operations(self):
        for path, item in self.document["paths"].items():
            for method in ("get", "post", "put", "delete", "patch"):
                if method in item:
                    yield path, method.upper(), item, item[method]

    def statuses(self):
        return {(path, method, int(status)) for path, method, _, operation in self.operations()
                for status in operation["responses"]}

    def validate(self, path, method, answer, body=None):
        """What is wrong with an answer, or "". """
        operation = self.document["paths"][path][method.lower()]
        if str(answer.status) not in operation["responses"]:
            return f"status {answer.status} is not in the file: {answer.body[:300]}"
        self.seen.add((path, method, answer.status))
        content = self.resolve(operation["responses"][str(answer.status)])["content"]
        if answer.type not in content:
            return f"type {answer.type!r} is not in the file"
        if answer.type == "text/plain":
            return ""
        schema = {**content[answer.type]["schema"], "components": self.document["components"]}
        validator = jsonschema.Draft202012Validator(schema)
        value = body if body is not None else answer.json
        return "\n".join(f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(value))


def parameters_of(contract, item, operation):
    listed = [contract.resolve(p) for p in item.get("parameters", []) + operation.get("parameters", [])]
    return sorted(p["name"] for p in listed if p["in"] == "query"), {p["name"] for p in listed if p["in"] == "path"}


def compare_routes(tap, contract, daemons):
    """Every route of the server is in the file, and the reverse."""
    routes = {(r["path"], r["method"]): r for r in daemons.call("GET", "/v1/routes").json["routes"]}
    documented = {(path, method): (item, operation) for path, method, item, operation in contract.operations()}
    tap.equal(sorted(routes), sorted(documented), "the routes are those of the file")
    for key in sorted(routes.keys() & documented.keys()):
        query, in_path = parameters_of(contract, *documented[key])
        tap.equal(sorted(routes[key]["arguments"]), query, f"{key[1]} {key[0]}: its arguments are those of the file")
        tap.equal({part[1:-1] for part in key[0].split("/") if part.startswith("{")}, in_path,
                  f"{key[1]} {key[0]}: the file has the names in its path")
        may_refuse = 403 in {int(s) for s in documented[key][1]["responses"]}
        tap.equal(routes[key]["changes"], may_refuse, f"{key[1]} {key[0]}: 403 where something is changed, only")


def walk_members(node, names=()):
    """Schemas of objects must name all members, else a test against them proves nothing."""
    if isinstance(node, dict):
        if "properties" in node:
            yield names, node
        for name, child in node.items():
            yield from walk_members(child, (*names, str(name)))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from walk_members(child, (*names, str(index)))


def check_strictness(tap, contract):
    loose = []
    for names, node in walk_members(contract.document["components"]["schemas"]):
        closed = node.get("additionalProperties") is False or node.get("unevaluatedProperties") is False
        if names[0] != "Traffic" and not closed:
            loose.append("/".join(names) + ": is open")
        if names[0] not in ("Stats",) and sorted(node.get("required", [])) != sorted(node["properties"]):
            loose.append("/".join(names) + ": required is not what it has")
    tap.equal(loose, [], "every schema names all members")


class Caller:
    def __init__(self, tap, contract, daemons):
        self.tap, self.contract, self.daemons = tap, contract, daemons

    def call(self, method, path, query="", status=200, body=None, name="web1", connection=None):
        where = path.replace("{name}", name) + query
        answer = self.daemons.call(method, where, body=body, connection=connection)
        wrong = self.contract.validate(path, method, answer)
        if answer.status != status:
            wrong = f"status {answer.status}, expected {status}: {answer.body[:300]}\n{wrong}"
        self.tap.check(not wrong, f"{method} {where}: {status} as the file says", wrong)
        return answer


def call_all(caller):
    call, daemons = caller.call, caller.daemons
    for path in ("status", "services", "backends", "stats", "drops", "events", "history", "talkers", "routes",
                 "maintenance"):
        call("GET", f"/v1/{path}")
        call("GET", f"/v1/{path}", "?colour=blue", 400)
    call("GET", "/metrics")
    call("GET", "/metrics", "?x=1", 400)
    call("GET", "/v1/lookup", "?client=203.0.113.9:40000&vip=192.0.2.10:80")
    call("GET", "/v1/lookup", "?client=203.0.113.9:40000&vip=192.0.2.10:81&protocol=udp")
    call("GET", "/v1/lookup", "?client=203.0.113.9", 400)
    call("GET", "/v1/events", "?since=-1", 400)
    call("GET", "/v1/events", "?since=1")
    drain, undrain, weight = (f"/v1/backends/{{name}}/{verb}" for verb in ("drain", "undrain", "weight"))
    call("POST", drain, "?deadline=10m&at_deadline=keep")
    call("GET", "/v1/backends")
    call("POST", drain, "?pool=web&force=1", name="web2")
    call("POST", drain, "?deadline=soon", 400)
    call("POST", undrain)
    call("POST", undrain, "?pool=web", name="web2")
    call("POST", weight, "?weight=7&pool=web")
    call("POST", weight, "?weight=65536", 400)
    call("POST", weight, "?reset=1")
    for path, query in ((drain, "?"), (undrain, "?"), (weight, "?weight=1&")):
        call("POST", path, query + "pools=web", 400)
        call("POST", path, query, 404, name="web9")
        call("POST", path, query + "pool=none", 404)
    call("POST", "/v1/flush", "?force=1")
    call("POST", "/v1/flush", "?forced=1", 400)
    caller.tap.check([event["actor"] for event in call("GET", "/v1/events").json["events"]
                      if event["type"] == "flush"], "a flush is in the events, with who asked")
    call("POST", "/v1/maintenance", "?state=on")
    call("POST", "/v1/maintenance", "?state=off")
    call("POST", "/v1/maintenance", "?state=away", 400)
    caller.tap.equal([(act["action"], act["actor"]["by"]) for act in call("GET", "/v1/history").json["actions"]],
                     [("flow caches flushed: 0 entries forgotten", "unix"), ("maintenance begun", "unix"),
                      ("maintenance ended", "unix")], "what makes no generation is in the history, with who asked")
    caller.tap.equal([event["message"] for event in call("GET", "/v1/events").json["events"]
                      if event["type"] == "maintenance"], ["maintenance: withdrawn", "maintenance: announced"],
                     "maintenance is in the events")
    call("POST", "/v1/plan", "?file=new.yaml", body=SECOND)
    call("POST", "/v1/plan", "", 422, body="seed: x\n")
    call("POST", "/v1/plan", "?fil=x", 400, body=SECOND)
    call("POST", "/v1/rollback", "", 404)
    call("POST", "/v1/reload")
    daemons.write_config(SECOND)
    call("POST", "/v1/reload")
    call("POST", "/v1/reload", "?x=1", 400)
    call("POST", "/v1/rollback")
    call("GET", "/v1/status")
    call("GET", "/v1/history")
    call("POST", "/v1/rollback", "?to=99", 404)
    call("POST", "/v1/rollback", "?to=x", 400)
    call("POST", "/v1/rollback", "?to=2")
    with open(os.path.join(daemons.state, "state.json.configs", "1.yaml"), "a") as touched:
        touched.write("# by hand\n")
    call("POST", "/v1/rollback", "?to=1", 422)
    daemons.write_config("seed: x\n")
    call("POST", "/v1/reload", "", 422)
    daemons.write_config(CONFIG)
    call("POST", "/v1/reload")
    call("GET", "/v1/history")
    call("GET", "/v1/events")
    daemons.write_config(JUMP)
    call("POST", "/v1/reload")
    call("POST", weight, "?weight=9", 409)
    daemons.write_config(RULES)
    call("POST", "/v1/reload")
    call("GET", "/v1/services")
    call("GET", "/metrics")
    daemons.write_config(FULL_NAT)
    call("POST", "/v1/reload")
    pools = {pool["name"]: pool["nat"] for pool in call("GET", "/v1/status").json["pools"]}
    caller.tap.equal(pools, {"web": None, "shop": {"sessions": 0, "ports": 16000, "ports_used": 0, "ports_free": 16000,
                                                   "exhausted": 0}}, "the ports of full NAT are counted by pool")
    call("GET", "/v1/backends")
    daemons.write_config(CONFIG)
    call("POST", "/v1/reload")


def call_over_tcp(caller, port):
    """Nobody knows who asks there: reading only."""
    def tcp():
        return http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    caller.call("GET", "/v1/status", connection=tcp())
    caller.call("POST", "/v1/plan", body=SECOND, connection=tcp())
    for path in ("/v1/reload", "/v1/rollback", "/v1/backends/{name}/drain", "/v1/backends/{name}/undrain"):
        caller.call("POST", path, "", 403, connection=tcp())
    caller.call("POST", "/v1/backends/{name}/weight", "?weight=9", 403, connection=tcp())
    caller.call("POST", "/v1/maintenance", "?state=on", 403, connection=tcp())
    caller.call("POST", "/v1/flush", "", 403, connection=tcp())
    answer = caller.daemons.call("GET", "/v1/status", headers={"Host": "evil.example"}, connection=tcp())
    caller.tap.equal(answer.status, 403, "GET /v1/status over TCP by another host's name: 403")
    caller.tap.check(not any(e["type"] == "drain" and e["actor"] and e["actor"]["by"] == "tcp"
                             for e in caller.call("GET", "/v1/events").json["events"]),
                     "nothing was changed over TCP")


def follow(caller):
    """A stream: what is kept, then what comes, one object a line."""
    contract, daemons = caller.contract, caller.daemons
    from daemons import UnixConnection
    connection = UnixConnection(daemons.socket)
    connection.request("GET", "/v1/events?follow=1&since=0")
    response = connection.getresponse()
    newest = daemons.call("GET", "/v1/events").json["newest"]
    lines = [json.loads(response.readline()) for _ in range(newest)]
    daemons.call("POST", "/v1/backends/web1/drain")
    lines.append(json.loads(response.readline()))
    caller.tap.equal([line["number"] for line in lines], list(range(1, newest + 2)), "a stream has every event once")
    caller.tap.equal(lines[-1]["type"], "drain", "and new ones as they come")
    caller.tap.equal(lines[-1]["actor"], {"by": "unix", "uid": os.getuid(), "pid": os.getpid()}, "with who did it")

    class Line:
        status, type, body = 200, "application/x-ndjson", b""
    wrong = [text for text in (contract.validate("/v1/events", "GET", Line, line) for line in lines) if text]
    caller.tap.equal(wrong, [], "each line is as the file says")
    connection.close()
    daemons.call("POST", "/v1/backends/web1/undrain")


def call_without_dataplane(caller):
    daemons = caller.daemons
    daemons.stop("dataplane")
    wait_until(lambda: not daemons.call("GET", "/v1/status").json["dataplane"]["connected"], "the dataplane has gone")
    for path in ("status", "services", "backends", "stats", "drops", "talkers"):
        caller.call("GET", f"/v1/{path}")
    caller.call("GET", "/metrics")
    caller.call("GET", "/v1/lookup", "?client=203.0.113.9:40000&vip=192.0.2.10:80", 503)
    caller.call("POST", "/v1/flush", "?force=1", 503)
    caller.call("POST", "/v1/plan", body=SECOND)
    caller.call("POST", "/v1/backends/{name}/drain")
    # Without a folder for the state nothing can be remembered, so nothing is done.
    shutil.rmtree(daemons.state)
    caller.call("POST", "/v1/backends/{name}/undrain", "", 500)
    caller.call("POST", "/v1/backends/{name}/drain", "?force=1", 500, name="web2")
    caller.call("POST", "/v1/backends/{name}/weight", "?weight=9", 500, name="web2")
    caller.call("POST", "/v1/maintenance", "?state=on", 500)
    daemons.stop("control")
    os.mkdir(daemons.state)
    daemons.start_control()
    caller.call("POST", "/v1/plan", "", 503, body=SECOND)


def crowd(caller):
    """More followers than there is room for."""
    from daemons import UnixConnection
    connections = []
    while len(connections) < 65:
        connection = UnixConnection(caller.daemons.socket)
        connection.request("GET", "/v1/events?follow=1&since=0")
        connections.append(connection)
        answer = connection.getresponse()
        if answer.status != 200:
            break
    caller.tap.equal(len(connections), 65, "64 clients may follow the events")
    caller.call("GET", "/v1/events", "?follow=1", 503)
    for connection in connections:
        connection.close()


def main():
    tap, contract = Tap(), Contract(sys.argv[3])
    check_strictness(tap, contract)
    daemons = Daemons(sys.argv[1], sys.argv[2])
    try:
        daemons.start()
        compare_routes(tap, contract, daemons)
        caller = Caller(tap, contract, daemons)
        call_all(caller)
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        daemons.write_config(CONFIG + f"api: {{ listen: \"127.0.0.1:{port}\" }}\n")
        caller.call("POST", "/v1/reload")
        call_over_tcp(caller, port)
        follow(caller)
        crowd(caller)
        call_without_dataplane(caller)
        tap.equal(sorted(contract.statuses() - contract.seen - UNSEEN), [], "every status of the file was seen")
    except Exception as error:  # noqa: BLE001
        tap.check(False, f"the test came to its end: {error!r}", daemons.log("control") + daemons.log("dataplane"))
    finally:
        daemons.clean_up()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
