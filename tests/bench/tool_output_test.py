"""What tools printed, and the numbers in it."""

import unittest

from bench.tool_output import (iperf3_received, iperf_udp_reports, netperf_all, netperf_values, percentile, ping_times,
                               sockperf_round_trip)

NETPERF_STREAM = """\
REMOTE_RECV_THROUGHPUT=2445.65
REMOTE_BYTES_RECVD=309404864
ELAPSED_TIME=1.01
PROTOCOL=TCP
"""
NETPERF_REFUSED = """\
establish control: are you sure there is a netserver listening on 10.77.0.2 at port 12865?
establish_control could not establish the control connection from 0.0.0.0 port 0 address family AF_INET to 10.77.0.2
"""
IPERF_CLIENT = """\
------------------------------------------------------------
Client connecting to 10.77.0.2, UDP port 5001
Sending 60000 byte datagrams, IPG target: 4.80 us (kalman adjust)
UDP buffer size: 8.00 MByte (WARNING: requested 4096 KByte)
------------------------------------------------------------
[  1] local 10.77.0.1 port 59383 connected with 10.77.0.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-1.0054 sec  1413867 KBytes  11520661 Kbits/sec
[  1] Sent 24131 datagrams
[  1] Server Report:
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  1] 0.0000-1.0086 sec  931641 KBytes  7566992 Kbits/sec   0.005 ms 8230/24130 (34%)
"""
IPERF_SERVER_OF_TWO = """\
[  1] local 10.77.0.2 port 5001 connected with 10.77.0.1 port 57723
[  2] local 10.77.0.2 port 5001 connected with 10.77.0.1 port 45000
[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams
[  2] 0.0000-0.9521 sec   109 MBytes   964 Mbits/sec   0.007 ms 3677/5589 (66%)
[  1] 0.0000-0.9997 sec   118 MBytes   993 Mbits/sec   0.003 ms 3392/5460 (62%)
[  1] 0.0000-0.9997 sec  1 datagrams received out-of-order
[ ID] Interval       Transfer     Bandwidth
[SUM] 0.0000-0.9997 sec   228 MBytes  1.91 Gbits/sec   7069/11049 (64%)
[SUM] 0.0000-0.9997 sec  1 datagrams received out-of-order
"""
IPERF_WITHOUT_ANSWER = """\
[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-1.0035 sec  696797 KBytes  5688143 Kbits/sec
[  1] Sent 11893 datagrams
[  3] WARNING: did not receive ack of last datagram after 10 tries.
"""
PING = """\
PING 10.99.0.2 (10.99.0.2) 56(84) bytes of data.
64 bytes from 10.99.0.2: icmp_seq=1 ttl=64 time=0.091 ms
64 bytes from 10.99.0.2: icmp_seq=3 ttl=64 time=12.8 ms
64 bytes from 10.99.0.2: icmp_seq=3 ttl=64 time=13.1 ms (DUP!)
64 bytes from 10.99.0.2: icmp_seq=4 ttl=64 time=1060 ms

--- 10.99.0.2 ping statistics ---
4 packets transmitted, 3 received, +1 duplicates, 25% packet loss, time 30ms
"""
SOCKPERF = """\
sockperf: \x1b[2;35m== version #3.7-no.git == \x1b[0m
sockperf: [Valid Duration] RunTime=0.551 sec; SentMessages=11469; ReceivedMessages=11469
sockperf: \x1b[2;35m====> avg-rtt=48.001 (std-dev=285.572)\x1b[0m
sockperf: # dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0
sockperf: Summary: Round trip is 48.001 usec
sockperf: ---> <MAX> observation = 8680.035
sockperf: ---> percentile 99.990 = 7439.290
sockperf: ---> percentile 99.000 =   92.825
sockperf: ---> percentile 50.000 =   23.845
sockperf: ---> <MIN> observation =   20.659
"""
IPERF3_UDP = {"end": {"streams": [{"udp": {}}], "sum": {
    "seconds": 1.001433, "bytes": 5630080, "jitter_ms": 0.28, "lost_packets": 48856, "packets": 87970, "sender": True}}}
IPERF3_TCP = {"end": {"streams": [{"sender": {}, "receiver": {}}], "sum_received": {
    "seconds": 1.014908, "bytes": 367722496, "bits_per_second": 2898568114.5}}}


class Netperf(unittest.TestCase):
    def test_numbers_are_numbers_and_words_words(self):
        values = netperf_values(NETPERF_STREAM)
        self.assertEqual(values["REMOTE_RECV_THROUGHPUT"], 2445.65)
        self.assertEqual(values["REMOTE_BYTES_RECVD"], 309404864)
        self.assertEqual(values["PROTOCOL"], "TCP")

    def test_nothing_where_it_was_refused(self):
        self.assertEqual(netperf_values(NETPERF_REFUSED), {})

    def test_one_value_of_each_of_several(self):
        self.assertEqual(netperf_all(NETPERF_STREAM + NETPERF_STREAM, "ELAPSED_TIME"), [1.01, 1.01])


class IperfUdp(unittest.TestCase):
    def test_the_servers_report_not_the_clients_line(self):
        (report,) = iperf_udp_reports(IPERF_CLIENT)
        self.assertEqual((report.seconds, report.lost, report.sent, report.received), (1.0086, 8230, 24130, 15900))

    def test_each_stream_once_and_no_sum(self):
        self.assertEqual([r.sent for r in iperf_udp_reports(IPERF_SERVER_OF_TWO)], [5589, 5460])

    def test_nothing_where_the_server_did_not_answer(self):
        self.assertEqual(iperf_udp_reports(IPERF_WITHOUT_ANSWER), [])


class Ping(unittest.TestCase):
    def test_times_by_number_in_us_without_duplicates(self):
        times = ping_times(PING)
        self.assertEqual(sorted(times), [1, 3, 4])
        self.assertAlmostEqual(times[1], 91)
        self.assertAlmostEqual(times[3], 12800)
        self.assertAlmostEqual(times[4], 1060000)


class Sockperf(unittest.TestCase):
    def test_mean_and_percentiles(self):
        self.assertEqual(sockperf_round_trip(SOCKPERF), {"mean": 48.001, "p50": 23.845, "p99": 92.825})

    def test_none_of_an_error(self):
        self.assertIsNone(sockperf_round_trip("sockperf: ERROR: Can`t connect socket (errno=111 Connection refused)"))


class Iperf3(unittest.TestCase):
    def test_tcp_bytes_of_the_receiver(self):
        self.assertEqual(iperf3_received(IPERF3_TCP), (367722496, 1.014908, None))

    def test_udp_counts_what_arrived(self):
        received, seconds, datagrams = iperf3_received(IPERF3_UDP)
        self.assertEqual((received, seconds, datagrams), (64 * (87970 - 48856), 1.001433, 87970 - 48856))

    def test_none_of_an_error(self):
        self.assertIsNone(iperf3_received({"start": {}, "end": {}, "error": "unable to connect to server"}))


class Percentile(unittest.TestCase):
    def test_smallest_that_enough_do_not_exceed(self):
        self.assertEqual(percentile(range(1, 201), 0.99), 198)
        self.assertEqual(percentile([3, 1, 2], 0.5), 2)
        self.assertEqual(percentile([7], 0.99), 7)


if __name__ == "__main__":
    unittest.main()
