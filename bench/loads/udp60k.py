"""What a tunnel can take without loss: first as fast as it goes, then at 0.9 of what arrived."""

from bench import loads
from bench.loads import LoadFailed, load


@load("udp_stream_1", "udp_stream_2", "udp_loss", "udp_loss_flat_out")
def udp_stream_and_loss(world, contestant, seconds, streams=1, payload=60000):
    send = loads.every()["udp_stream"].run
    metric = f"udp_stream_{streams}"
    flat_out = send(world, contestant, seconds, streams=streams, payload=payload)
    if not flat_out[metric]:
        raise LoadFailed("nothing arrived")
    calm = send(world, contestant, seconds, streams=streams, payload=payload, rate=0.9 * flat_out[metric])
    return {metric: flat_out[metric], "udp_loss_flat_out": flat_out["udp_loss"], "udp_loss": calm["udp_loss"]}
