#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A gRPC server with the health service, for the end-to-end tests.

  grpc_server.py PORT FILE [CERTIFICATE KEY]
                               answers grpc.health.v1.Health/Check with the status whose name is in FILE; without FILE
                               with gRPC status 5 (NOT_FOUND), as for a service that it does not know;
                               over TLS with the certificate (PEM)
"""
import concurrent.futures
import sys

import grpc

STATUSES = {"UNKNOWN": b"", "SERVING": b"\x08\x01", "NOT_SERVING": b"\x08\x02"}


def main():
    port, name, *tls = sys.argv[1:]

    def check(request, context):
        try:
            with open(name) as file:
                return STATUSES[file.read().strip()]
        except (OSError, KeyError):
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")

    handler = grpc.unary_unary_rpc_method_handler(check)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler})])
    if tls:
        certificate, key = (open(file, "rb").read() for file in tls)
        taken = server.add_secure_port(f"[::]:{port}", grpc.ssl_server_credentials([(key, certificate)]))
    else:
        taken = server.add_insecure_port(f"[::]:{port}")
    if taken == 0:
        sys.exit(f"grpc_server.py: port {port} is taken")
    server.start()
    server.wait_for_termination()


main()
