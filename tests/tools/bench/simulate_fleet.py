#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""simulate_fleet.py [--box-rate N] [--rate N] [--seconds S] [--seed N] - N boxes behind leastconn.

A model of many boxes, not a measurement. A box serves --box-rate requests a second on two
processors; the time of a request is half constant and half exponential. Requests arrive at random.
Each balancer counts only its own requests in flight, and sends a request to the box with the
fewest. In the middle of the run some boxes fail: "killed" boxes refuse connections, and the
balancer sends the request to another box; "lost" boxes do not answer, and the balancer waits for
the connect timeout first. Requests that are in flight on a box that fails are repeated, as those
with Idempotency-Key are. The health checks take a box out after half a second.
"""
import argparse
import heapq
import random

PROCESSORS = 2  # of a box
DETECT_S = 0.5  # until the health checks take a box out: two of them, 250 ms apart
CONNECT_S = 1.0  # connect timeout
RETRIES = 3


class Balancer:
    """The requests in flight of one balancer on each box, and the box with the fewest."""

    def __init__(self, boxes, rng):
        self.counts = [0] * boxes
        self.serving = set(range(boxes))
        self.buckets = [list(range(boxes))]  # boxes by count; entries may be out of date
        rng.shuffle(self.buckets[0])

    def note(self, box):
        count = self.counts[box]
        while len(self.buckets) <= count:
            self.buckets.append([])
        self.buckets[count].append(box)

    def choose(self, avoided, rng):
        for count, bucket in enumerate(self.buckets):
            kept = None
            while bucket:
                at = rng.randrange(len(bucket))
                bucket[at], bucket[-1] = bucket[-1], bucket[at]
                box = bucket.pop()
                if self.counts[box] != count or box not in self.serving:
                    continue
                if box == avoided:
                    kept = box
                    continue
                if kept is not None:
                    bucket.append(kept)
                return box
            if kept is not None:
                bucket.append(kept)
        return None

    def change(self, box, by):
        self.counts[box] += by
        self.note(box)


class Fleet:
    def __init__(self, boxes, balancers, options, failing, kind):
        self.rng = random.Random(options.seed)
        self.options, self.kind = options, kind
        self.balancers = [Balancer(boxes, self.rng) for _ in range(balancers)]
        self.free = [[0.0] * PROCESSORS for _ in range(boxes)]  # when each processor is free
        self.fails_at = [float('inf')] * boxes
        for box in self.rng.sample(range(boxes), failing):
            self.fails_at[box] = options.seconds / 2
        self.events, self.order = [], 0
        self.times, self.failed, self.repeated = [], 0, 0

    def push(self, when, what, *rest):
        self.order += 1
        heapq.heappush(self.events, (when, self.order, what, *rest))

    def serve(self, now, box):
        """The time at which the box has answered a request that arrives now."""
        mean = PROCESSORS / self.options.box_rate
        processor = min(range(PROCESSORS), key=self.free[box].__getitem__)
        begin = max(now, self.free[box][processor])
        end = begin + mean / 2 + self.rng.expovariate(2 / mean)
        self.free[box][processor] = end
        return end

    def send(self, now, begin, balancer, tries, avoided=None):
        box = balancer.choose(avoided, self.rng)
        if box is None or tries > RETRIES:
            self.failed += 1
            return
        balancer.change(box, 1)
        fails_at = self.fails_at[box]
        if now >= fails_at:
            delay = 0 if self.kind == 'killed' else CONNECT_S
            self.push(now + delay, 'again', begin, balancer, box, tries)
            return
        end = self.serve(now, box)
        if end >= fails_at:  # it was in flight when the box failed
            delay = 0 if self.kind == 'killed' else DETECT_S
            self.push(fails_at + delay, 'again', begin, balancer, box, tries)
        else:
            self.push(end, 'done', begin, balancer, box, tries)

    def handle(self, now, what, begin, balancer, box, tries):
        balancer.change(box, -1)
        if what == 'done':
            self.times.append(now - begin)
            return
        self.repeated += 1
        self.send(now, begin, balancer, tries + 1, box)

    def run(self):
        arrival = 0.0
        for box, when in enumerate(self.fails_at):
            if when != float('inf'):
                self.push(when + DETECT_S, 'out', box)
        while arrival < self.options.seconds or self.events:
            if arrival < self.options.seconds and (
                not self.events or arrival <= self.events[0][0]
            ):
                self.send(arrival, arrival, self.rng.choice(self.balancers), 0)
                arrival += self.rng.expovariate(self.options.rate)
                continue
            now, _, what, *rest = heapq.heappop(self.events)
            if what == 'out':
                for balancer in self.balancers:
                    balancer.serving.discard(rest[0])
            else:
                self.handle(now, what, *rest)
        self.times.sort()
        return self

    def quantile_ms(self, part):
        return self.times[min(int(len(self.times) * part), len(self.times) - 1)] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--box-rate', type=float, default=20000)
    parser.add_argument('--rate', type=float, default=1e6)
    parser.add_argument('--seconds', type=float, default=1.0)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    print('| boxes | load | balancers | boxes that fail | p50, ms | p99, ms | p99.9, ms |'
          ' sent again | failed |')
    print('|---|---|---|---|---|---|---|---|---|')
    needed = options.rate / options.box_rate
    for share in (0.95, 0.8, 0.65):
        boxes = round(needed / share)
        for balancers, failing, kind in (
            (8, 0, 'killed'),
            (8, 2, 'killed'),
            (8, 2, 'lost'),
        ):
            fleet = Fleet(boxes, balancers, options, failing, kind).run()
            total = len(fleet.times) + fleet.failed
            print(
                f'| {boxes} | {needed / boxes:.0%} | {balancers} | '
                f'{f"{failing} {kind}" if failing else "none"} | '
                f'{fleet.quantile_ms(0.5):.2f} | {fleet.quantile_ms(0.99):.2f} | '
                f'{fleet.quantile_ms(0.999):.2f} | {fleet.repeated / total:.2%} | '
                f'{fleet.failed / total:.3%} |',
                flush=True,
            )


if __name__ == '__main__':
    main()
