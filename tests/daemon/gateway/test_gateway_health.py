#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_gateway_health.py DAEMON GATEWAY [TEST...] - the health checking protocol of gRPC."""
import time

import gateway_case
from grpc_case import OIP, GrpcCase, grpc

HEALTH = 'grpc.health.v1.Health'
# Numbers of HealthCheckResponse.ServingStatus.
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


class HealthCase(GrpcCase):
    def check(self, service):
        method = self.method('Check', HEALTH, 'HealthCheck')
        return method(OIP.HealthCheckRequest(service=service), timeout=60).status

    def watch(self, request, timeout=60, **options):
        method = self.channel.unary_stream(
            f'/{HEALTH}/Watch',
            request_serializer=lambda m: m if isinstance(m, bytes) else m.SerializeToString(),
            response_deserializer=OIP.HealthCheckResponse.FromString,
        )
        return method(request, timeout=timeout, **options)

    def code_of(self, call):
        """The status codes that a call answers before it fails, and how it fails."""
        statuses = []
        with self.assertRaises(grpc.RpcError) as failure:
            for answer in call:
                statuses.append(answer.status)
        return statuses, failure.exception.code()


class Check(HealthCase):
    def test_services(self):
        for service in ('', 'inference.GRPCInferenceService', HEALTH):
            self.assertEqual(self.check(service), SERVING, service)
        for service in ('inference', 'inference.GRPCInferenceServiceX', 'x' * 500):
            with self.assertRaises(grpc.RpcError) as failure:
                self.check(service)
            self.assertEqual(failure.exception.code(), grpc.StatusCode.NOT_FOUND, service)
        with self.assertRaises(grpc.RpcError) as failure:
            self.method('Check', HEALTH, 'HealthCheck')(b'\x0a\x09x', timeout=60)
        self.assertEqual(failure.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)


class Watch(HealthCase):
    def test_the_status_comes_at_once_and_at_each_change(self):
        calls = [self.watch(OIP.HealthCheckRequest()) for _ in range(5)]
        unknown = self.watch(OIP.HealthCheckRequest(service='none'))
        self.assertEqual([next(call).status for call in calls], [SERVING] * 5)
        self.assertEqual(next(unknown).status, SERVICE_UNKNOWN)
        # Calls that have ended must not keep others from learning of a change.
        calls.pop(2).cancel()
        calls.pop(0).cancel()
        for _ in range(2):
            self.daemon.end()
            self.assertEqual([next(call).status for call in calls], [NOT_SERVING] * 3)
            late = self.watch(OIP.HealthCheckRequest())
            self.assertEqual(next(late).status, NOT_SERVING)
            self.daemon.start()
            calls.append(late)
            self.assertEqual([next(call).status for call in calls], [SERVING] * 4)
            calls.pop(0).cancel()
        # Nothing has changed for this one.
        unknown.cancel()
        with self.assertRaises(grpc.RpcError):
            next(unknown)

    def test_a_deadline_ends_the_call(self):
        begin = time.monotonic()
        found = self.code_of(self.watch(OIP.HealthCheckRequest(), timeout=1))
        self.assertEqual(found, ([SERVING], grpc.StatusCode.DEADLINE_EXCEEDED))
        self.assertGreaterEqual(time.monotonic() - begin, 0.9)

    def test_messages_that_are_refused(self):
        for text, code in (
            (b'\x0a\x09x', grpc.StatusCode.INVALID_ARGUMENT),
            (OIP.HealthCheckRequest(service='x' * 1100), grpc.StatusCode.RESOURCE_EXHAUSTED),
        ):
            self.assertEqual(self.code_of(self.watch(text)), ([], code))
        call = self.watch(OIP.HealthCheckRequest(service='x' * 1000))
        self.assertEqual(next(call).status, SERVICE_UNKNOWN)
        call.cancel()
        compressed = self.watch(
            OIP.HealthCheckRequest(service='x' * 1000), compression=grpc.Compression.Gzip
        )
        self.assertEqual(self.code_of(compressed), ([], grpc.StatusCode.UNIMPLEMENTED))

    def test_a_client_that_never_asks_is_no_watcher(self):
        method = self.channel.stream_stream(
            f'/{HEALTH}/Watch',
            request_serializer=lambda m: m,
            response_deserializer=OIP.HealthCheckResponse.FromString,
        )
        # The request ends without a message.
        found = self.code_of(method(iter([]), timeout=60))
        self.assertEqual(found, ([], grpc.StatusCode.INVALID_ARGUMENT))
        # What follows the message is ignored.
        call = method(iter([b'', b'\x0a\x04none', b'\x0a\x09x']), timeout=60)
        self.assertEqual(next(call).status, SERVING)
        call.cancel()


class Stop(HealthCase):
    def test_a_gateway_that_stops_ends_the_call(self):
        call = self.watch(OIP.HealthCheckRequest())
        self.assertEqual(next(call).status, SERVING)
        begin = time.monotonic()
        self.assertEqual(self.gateway.end(), 0)
        # A call that does not end would keep the gateway for 10 s.
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(self.code_of(call), ([], grpc.StatusCode.UNAVAILABLE))


if __name__ == '__main__':
    gateway_case.main()
