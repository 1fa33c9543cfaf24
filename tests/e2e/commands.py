#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gives halbach-control orders as fast as it takes them, from several clients. Python standard library only.

  commands.py weights SOCKET CLIENTS COUNT BACKEND...   random weights and drains taken back; ends with all as configured
  commands.py reloads SOCKET COUNT CONFIG GOOD GOOD BAD   reloads the files in turn, and asks for every list

The last line is JSON: orders, wrong (a list), seconds.
"""
import http.client
import json
import os
import random
import socket
import sys
import threading
import time


class Client(http.client.HTTPConnection):
    """One connection that stays open."""

    def __init__(self, path):
        super().__init__("halbach", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)

    def ask(self, method, url):
        self.request(method, url)
        answer = self.getresponse()
        return answer.status, json.loads(answer.read())


def give_weights(path, count, backends, seed, wrong):
    client, choose = Client(path), random.Random(seed)
    for _ in range(count):
        backend = choose.choice(backends)
        order = choose.choice([f"weight?weight={choose.randint(1, 9)}", "weight?reset=1", "drain?force=1", "undrain"])
        status, answer = client.ask("POST", f"/v1/backends/{backend}/{order}")
        if status != 200:
            wrong.append(f"{backend}/{order}: status {status}")
        elif not answer["applied"]:
            wrong.append(f"{backend}/{order}: answered before it served")
        elif client.ask("GET", "/v1/status")[1]["generation"]["serving"] < answer["generation"]:
            wrong.append(f"{backend}/{order}: generation {answer['generation']} does not serve")


def run_weights(path, clients, count, backends):
    wrong = []
    threads = [threading.Thread(target=give_weights, args=(path, count, backends, n, wrong)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = Client(path)
    for backend in backends:
        for order in ("undrain", "weight?reset=1"):
            if last.ask("POST", f"/v1/backends/{backend}/{order}")[0] != 200:
                wrong.append(f"{backend}/{order}")
    return clients * count, wrong


def run_reloads(path, count, config, files):
    client, wrong = Client(path), []
    texts = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            texts.append(file.read())
    for i in range(count):
        with open(config + ".next", "w", encoding="utf-8") as file:
            file.write(texts[i % len(texts)])
        os.rename(config + ".next", config)
        status, _ = client.ask("POST", "/v1/reload")
        if status != (422 if i % len(texts) == len(texts) - 1 else 200):
            wrong.append(f"reload {i}: status {status}")
        for url in ("backends", "services", "stats", "drops", "maintenance"):
            client.ask("GET", "/v1/" + url)
    return count, wrong


def main():
    mode, path, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    begin = time.monotonic()
    if mode == "weights":
        orders, wrong = run_weights(path, int(arguments[0]), int(arguments[1]), arguments[2:])
    else:
        orders, wrong = run_reloads(path, int(arguments[0]), arguments[1], arguments[2:])
    print(json.dumps({"orders": orders, "wrong": wrong[:5], "seconds": round(time.monotonic() - begin, 1)}))


if __name__ == "__main__":
    main()
