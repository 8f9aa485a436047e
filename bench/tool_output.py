"""What public tools print, as numbers. Pure functions; None, or nothing, where the text doesn't say."""

import re
from typing import NamedTuple


def netperf_values(text):
    """Of netperf's omni tests with -k: {NAME: value}, numbers as float."""
    values = {}
    for name, value in re.findall(r"(?m)^([A-Z0-9_]+)=(.*)$", text):
        try:
            values[name] = float(value)
        except ValueError:
            values[name] = value
    return values


def netperf_all(text, name):
    """The values of one NAME in the output of several."""
    return [float(value) for value in re.findall(rf"(?m)^{name}=([\d.]+)$", text)]


class UdpReport(NamedTuple):
    """Of one stream, from its receiver."""

    seconds: float
    lost: int
    sent: int

    @property
    def received(self):
        return self.sent - self.lost


_IPERF_UDP = re.compile(
    r"^\[\s*(\d+)\]\s+[\d.]+-\s*([\d.]+) sec\s+[\d.]+ \w?Bytes\s+[\d.]+ \w?bits/sec\s+[\d.]+ ms\s+(\d+)/\s*(\d+)", re.M)


def iperf_udp_reports(text):
    """Of iperf 2, server's output or the client's with the server's reports: one of each stream, sums left out."""
    return [UdpReport(float(seconds), int(lost), int(sent)) for _, seconds, lost, sent in _IPERF_UDP.findall(text)]


def ping_times(text):
    """{sequence number: us} of what came back, duplicates left out."""
    times = {}
    for number, value in re.findall(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms(?!.*DUP!)", text):
        times.setdefault(int(number), float(value) * 1000)
    return times


def sockperf_round_trip(text):
    """Of sockperf ping-pong --full-rtt: {"mean", "p50", "p99"} in us."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    mean = re.search(r"avg-rtt=\s*([\d.]+)", plain)
    percentiles = dict(re.findall(r"percentile ([\d.]+) =\s*([\d.]+)", plain))
    if not mean or not {"50.000", "99.000"} <= percentiles.keys():
        return None
    return {"mean": float(mean.group(1)), "p50": float(percentiles["50.000"]), "p99": float(percentiles["99.000"])}


def iperf3_received(report):
    """Of iperf3's JSON, decoded: (bytes, seconds, datagrams) that arrived; datagrams is None for TCP."""
    end = report.get("end", {})
    if "sum_received" in end and not end.get("streams", [{}])[0].get("udp"):
        return end["sum_received"]["bytes"], end["sum_received"]["seconds"], None
    if "sum" not in end:
        return None
    datagrams = end["sum"]["packets"] - end["sum"]["lost_packets"]
    sent_bytes = end["sum"]["bytes"] / max(1, end["sum"]["packets"])
    return datagrams * sent_bytes, end["sum"]["seconds"], datagrams


def percentile(values, share):
    """The smallest value that at least `share` of them don't exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
