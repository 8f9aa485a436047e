"""The search for the rate at which datagrams arrive, against networks that are a formula."""

import unittest

from bench.loads import LoadFailed
from bench.loads.iperf_udp import Seen, fastest


class Network:
    """Senders reach `limit` Gb/s; what arrives of an offer is `arrives(offer)`; None: no report."""

    def __init__(self, limit, arrives):
        self.limit, self.arrives, self.offers = limit, arrives, []

    def offer(self, gbps):
        self.offers.append(gbps)
        sent = min(gbps, self.limit)
        received = self.arrives(sent)
        if received is None:
            raise LoadFailed("0 reports of 1 streams")
        return Seen(sent, received, 100 * (1 - received / sent))


class Search(unittest.TestCase):
    def test_a_network_that_takes_all_is_believed_at_once(self):
        network = Network(10, lambda sent: sent)
        self.assertEqual(fastest(network.offer, 100).received, 10)
        self.assertLessEqual(len(network.offers), 3)

    def test_one_that_collapses_when_overrun(self):
        network = Network(16, lambda sent: sent if sent <= 1.3 else 0.05 * sent)
        seen = fastest(network.offer, 100)
        self.assertGreaterEqual(seen.received, 1.0)
        self.assertLess(seen.loss, 1)

    def test_no_report_at_full_speed_is_not_the_end(self):
        network = Network(16, lambda sent: sent if sent <= 3 else None)
        self.assertGreaterEqual(fastest(network.offer, 100).received, 2)

    def test_a_dead_network_fails_with_its_reason(self):
        network = Network(16, lambda sent: None)
        with self.assertRaisesRegex(LoadFailed, "0 reports"):
            fastest(network.offer, 100)
        self.assertLessEqual(len(network.offers), 10)

    def test_nothing_arrives(self):
        with self.assertRaisesRegex(LoadFailed, "nothing arrives"):
            fastest(Network(16, lambda sent: 0.0).offer, 100)


if __name__ == "__main__":
    unittest.main()
