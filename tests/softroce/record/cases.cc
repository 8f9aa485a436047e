// Makes two rdma_rxe devices of one machine say what the captures of tests/verbs/soft hold: one
// scenario a run, both ends in this process over librdmacm, a packet injected where an honest peer
// would not send it. Run by record.sh inside the guest; not part of the project's build.
//
//   cases SCENARIO CLIENT-ADDRESS SERVER-ADDRESS [INJECT-FROM-INTERFACE]

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
constexpr const char* kPort = "7471";

void need(bool good, const char* what) {
  if (!good) {
    std::perror(what);
    std::exit(1);
  }
}

sockaddr_storage resolve(const std::string& address, const char* port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  need(getaddrinfo(address.c_str(), port, &hints, &found) == 0, "getaddrinfo");
  sockaddr_storage out{};
  std::memcpy(&out, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return out;
}

// One end: an id, its channel, a registered buffer.
struct End {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ibv_mr* memory = nullptr;
  std::vector<char> buffer = std::vector<char>(8192, 'i');

  rdma_cm_event* next(rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    need(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    std::printf("  %s status %d\n", rdma_event_str(event->event), event->status);
    if (event->event != wanted) {
      std::printf("  wanted %s\n", rdma_event_str(wanted));
    }
    return event;
  }
  void expect(rdma_cm_event_type wanted) { rdma_ack_cm_event(next(wanted)); }

  void make_queue_pair(std::uint32_t access = IBV_ACCESS_LOCAL_WRITE) {
    ibv_qp_init_attr attributes{};
    attributes.cap = {16, 16, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 1;
    need(rdma_create_qp(id, nullptr, &attributes) == 0, "rdma_create_qp");
    memory = ibv_reg_mr(id->pd, buffer.data(), buffer.size(), static_cast<int>(access));
    need(memory != nullptr, "ibv_reg_mr");
  }
  void receive(std::size_t size) {
    need(rdma_post_recv(id, nullptr, buffer.data(), size, memory) == 0, "rdma_post_recv");
  }
  void send(std::size_t size) {
    need(rdma_post_send(id, nullptr, buffer.data(), size, memory, 0) == 0, "rdma_post_send");
  }
  void complete(ibv_cq* cq, const char* whose) {
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
      std::this_thread::sleep_for(1ms);
    }
    std::printf("  %s completion: %s\n", whose, ibv_wc_status_str(wc.status));
  }
};

struct Pair {
  End listener, client, server;
  std::string client_address, server_address;

  void listen() {
    rdma_cm_id*& id = listener.id;
    need(rdma_create_id(listener.channel, &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    sockaddr_storage address = resolve(server_address, kPort);
    need(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) == 0, "rdma_bind_addr");
    need(rdma_listen(id, 4) == 0, "rdma_listen");
  }
  void dial(const std::string& data = "hello") {
    need(rdma_create_id(client.channel, &client.id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    sockaddr_storage from = resolve(client_address, "0");
    sockaddr_storage to = resolve(server_address, kPort);
    need(rdma_resolve_addr(client.id, reinterpret_cast<sockaddr*>(&from),
                           reinterpret_cast<sockaddr*>(&to), 500) == 0,
         "rdma_resolve_addr");
    client.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    need(rdma_resolve_route(client.id, 500) == 0, "rdma_resolve_route");
    client.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    client.make_queue_pair();
    rdma_conn_param param{};
    param.private_data = data.data();
    param.private_data_len = static_cast<std::uint8_t>(data.size());
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = 6;
    param.rnr_retry_count = 6;
    need(rdma_connect(client.id, &param) == 0, "rdma_connect");
  }
  void take_request() {
    rdma_cm_event* event = listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
    server.id = event->id;
    rdma_ack_cm_event(event);
    need(rdma_migrate_id(server.id, server.channel) == 0, "rdma_migrate_id");
  }
  void accept(const std::string& data = "welcome") {
    rdma_conn_param param{};
    param.private_data = data.data();
    param.private_data_len = static_cast<std::uint8_t>(data.size());
    param.responder_resources = param.initiator_depth = 1;
    param.rnr_retry_count = 6;
    need(rdma_accept(server.id, &param) == 0, "rdma_accept");
  }
  void connect(bool with_receive) {
    listen();
    dial();
    take_request();
    server.make_queue_pair(IBV_ACCESS_LOCAL_WRITE);
    if (with_receive) {
      server.receive(4096);
    }
    accept();
    client.expect(RDMA_CM_EVENT_ESTABLISHED);
    server.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  void message() {
    client.send(64);
    client.complete(client.id->send_cq, "send");
    server.complete(server.id->recv_cq, "receive");
  }
  void disconnect() {
    need(rdma_disconnect(client.id) == 0, "rdma_disconnect");
    server.expect(RDMA_CM_EVENT_DISCONNECTED);
    rdma_disconnect(server.id);
    client.expect(RDMA_CM_EVENT_DISCONNECTED);
  }
};

// --- Packets of nobody -----------------------------------------------------------------------

std::uint32_t crc32(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::uint8_t b : bytes) {
    crc ^= b;
    for (int i = 0; i < 8; ++i) {
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xedb88320U : 0);
    }
  }
  return ~crc;
}

void put(std::vector<std::uint8_t>& to, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) {
    to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

void put_mac(std::vector<std::uint8_t>& to, int fd, const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  need(ioctl(fd, SIOCGIFHWADDR, &request) == 0, "SIOCGIFHWADDR");
  for (int i = 0; i < 6; ++i) {
    to.push_back(static_cast<std::uint8_t>(request.ifr_hwaddr.sa_data[i]));
  }
}

void put_address(std::vector<std::uint8_t>& to, const std::string& text) {
  in_addr address{};
  need(inet_pton(AF_INET, text.c_str(), &address) == 1, "inet_pton");
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&address);
  to.insert(to.end(), bytes, bytes + sizeof address);
}

// Sends `bth_and_payload` in IPv4 and UDP as though the client's device had: out of its interface
// `from`, to the interface `to` at the other end.
void inject(const Pair& pair, const char* from, const char* to,
            const std::vector<std::uint8_t>& bth_and_payload) {
  const std::uint64_t udp_length = 8 + bth_and_payload.size() + 4;
  std::vector<std::uint8_t> ip;
  put(ip, 0x45000000U | (20 + udp_length), 4);
  put(ip, 0x12344000U, 4);  // identification, DF
  put(ip, 0x40110000U, 4);  // TTL 64, UDP, checksum below
  put_address(ip, pair.client_address);
  put_address(ip, pair.server_address);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) {
    sum += static_cast<std::uint32_t>(ip[i] << 8 | ip[i + 1]);
  }
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum = ~((sum & 0xffffU) + (sum >> 16U)) & 0xffffU;

  std::vector<std::uint8_t> udp;
  put(udp, 50000, 2);
  put(udp, 4791, 2);
  put(udp, udp_length << 16U, 4);

  std::vector<std::uint8_t> masked(8, 0xff);
  masked.insert(masked.end(), ip.begin(), ip.end());
  masked.insert(masked.end(), udp.begin(), udp.end());
  masked.insert(masked.end(), bth_and_payload.begin(), bth_and_payload.end());
  for (const std::size_t i : {8 + 1, 8 + 8, 8 + 10, 8 + 11, 8 + 20 + 6, 8 + 20 + 7, 8 + 28 + 4}) {
    masked[i] = 0xff;
  }
  const std::uint32_t icrc = crc32(masked);

  const int fd = socket(AF_PACKET, SOCK_RAW, 0);
  need(fd >= 0, "AF_PACKET");
  std::vector<std::uint8_t> frame;
  put_mac(frame, fd, to);
  put_mac(frame, fd, from);
  put(frame, 0x0800, 2);
  ip[10] = static_cast<std::uint8_t>(sum >> 8U);
  ip[11] = static_cast<std::uint8_t>(sum);
  frame.insert(frame.end(), ip.begin(), ip.end());
  frame.insert(frame.end(), udp.begin(), udp.end());
  frame.insert(frame.end(), bth_and_payload.begin(), bth_and_payload.end());
  for (int i = 0; i < 4; ++i) {
    frame.push_back(static_cast<std::uint8_t>(icrc >> (8 * i)));
  }
  sockaddr_ll link{};
  link.sll_family = AF_PACKET;
  link.sll_ifindex = static_cast<int>(if_nametoindex(from));
  need(sendto(fd, frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&link), sizeof link) ==
           static_cast<ssize_t>(frame.size()),
       "sendto");
  close(fd);
  std::this_thread::sleep_for(200ms);
}

// A request to the server's queue pair, `ahead` packets past the one that it expects.
std::vector<std::uint8_t> request(const Pair& pair, std::uint8_t opcode, std::uint32_t ahead,
                                  std::size_t payload) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  need(ibv_query_qp(pair.client.id->qp, &attributes, IBV_QP_SQ_PSN, &init) == 0, "ibv_query_qp");
  std::vector<std::uint8_t> out{opcode, 0, 0xff, 0xff};
  put(out, pair.server.id->qp->qp_num, 4);
  put(out, 0x80000000U | ((attributes.sq_psn + ahead) & 0xffffffU), 4);
  out.resize(out.size() + payload, 0x5a);
  return out;
}

// A connection manager's message to QP 1.
std::vector<std::uint8_t> management(std::uint32_t psn, std::uint64_t transaction,
                                     std::uint16_t attribute,
                                     const std::vector<std::uint8_t>& body) {
  std::vector<std::uint8_t> out{0x64, 0, 0xff, 0xff};
  put(out, 1, 4);
  put(out, psn, 4);
  put(out, 0x80010000U, 4);
  put(out, 1, 4);
  put(out, 0x01070203, 4);
  put(out, 0, 4);
  put(out, transaction, 8);
  put(out, attribute, 2);
  put(out, 0, 6);
  out.insert(out.end(), body.begin(), body.end());
  out.resize(12 + 8 + 256, 0);
  return out;
}

// --- Scenarios -------------------------------------------------------------------------------

void talk(Pair& pair) {  // connect, one message, disconnect
  pair.connect(true);
  pair.message();
  pair.disconnect();
}

void rej_no_listener(Pair& pair) {
  pair.dial();
  pair.client.expect(RDMA_CM_EVENT_REJECTED);
}

void rej_consumer(Pair& pair) {
  pair.listen();
  pair.dial();
  pair.take_request();
  const std::string why(148, 'n');
  need(rdma_reject(pair.server.id, why.data(), 148) == 0, "rdma_reject");
  pair.client.expect(RDMA_CM_EVENT_REJECTED);
}

void rej_timeout(Pair& pair) {  // the client gives up while the server makes up its mind
  pair.listen();
  pair.dial();
  pair.take_request();
  std::this_thread::sleep_for(300ms);
  rdma_destroy_qp(pair.client.id);
  rdma_destroy_id(pair.client.id);  // Linux 6.1 tells the server nothing of this REJ
}

void rej_rep(Pair& pair) {  // the client gives up with the reply in its hands
  pair.listen();
  pair.dial();
  pair.take_request();
  pair.server.make_queue_pair();
  pair.accept();
  std::this_thread::sleep_for(500ms);
  rdma_destroy_qp(pair.client.id);
  rdma_destroy_id(pair.client.id);
  pair.server.expect(RDMA_CM_EVENT_REJECTED);
}

void rej_stale(Pair& pair, const char* from, const char* to) {
  // A REQ of the same adapter and queue pair under a new communication ID: the server rejects it
  // as stale and takes the old connection down.
  pair.connect(true);
  pair.message();
  std::vector<std::uint8_t> body;
  put(body, 0x00c0ffee, 4);
  put(body, 0, 4);
  put(body, 0x01060000U | 7471U, 8);
  const std::uint64_t guid = ibv_get_device_guid(pair.client.id->verbs->device);  // network order
  const auto* guid_bytes = reinterpret_cast<const std::uint8_t*>(&guid);
  body.insert(body.end(), guid_bytes, guid_bytes + sizeof guid);
  put(body, 0, 8);
  put(body, pair.client.id->qp->qp_num << 8U, 4);
  put(body, 0, 4);
  put(body, 0xa0, 4);
  put(body, 0x123456a6, 4);
  put(body, 0xffff57f0, 4);
  inject(pair, from, to, management(7, 0x1122334455667788ULL, 0x10, body));
  pair.client.expect(RDMA_CM_EVENT_DISCONNECTED);
  rdma_disconnect(pair.client.id);
  pair.server.expect(RDMA_CM_EVENT_DISCONNECTED);
}

void mra_req(Pair& pair) {  // the server answers after the client's first resend
  pair.listen();
  pair.dial();
  pair.take_request();
  std::this_thread::sleep_for(8s);
  pair.server.make_queue_pair();
  pair.accept();
  pair.client.expect(RDMA_CM_EVENT_ESTABLISHED);
  pair.server.expect(RDMA_CM_EVENT_ESTABLISHED);
  pair.disconnect();
}

void mra_rep(Pair& pair) {  // the client looks at the reply after the server's first resend
  pair.listen();
  pair.dial();
  pair.take_request();
  pair.server.make_queue_pair();
  pair.accept();
  std::this_thread::sleep_for(6s);
  pair.client.expect(RDMA_CM_EVENT_ESTABLISHED);
  pair.server.expect(RDMA_CM_EVENT_ESTABLISHED);
  pair.disconnect();
}

void duplicates(Pair& pair, const char* from, const char* to) {
  // DREQ for a connection that nobody knows: answered all the same.
  std::vector<std::uint8_t> body;
  put(body, 0x0a0b0c0d, 4);
  put(body, 0x01020304, 4);
  put(body, 0x00007700, 4);
  inject(pair, from, to, management(3, 0x99, 0x15, body));
}

void nak_sequence(Pair& pair, const char* from, const char* to) {
  pair.connect(true);
  inject(pair, from, to, request(pair, 0x04, 3, 64));  // SEND_ONLY, three packets early
  pair.message();
  pair.disconnect();
}

void nak_invalid(Pair& pair, const char* from, const char* to) {
  pair.connect(true);
  inject(pair, from, to, request(pair, 0x01, 0, 1024));  // SEND_MIDDLE without a SEND_FIRST
  pair.disconnect();
}

void nak_access(Pair& pair) {  // RDMA READ with a key that is nobody's
  pair.connect(true);
  need(rdma_post_read(pair.client.id, nullptr, pair.client.buffer.data(), 64, pair.client.memory, 0,
                      0x1000, 0xdead) == 0,
       "rdma_post_read");
  pair.client.complete(pair.client.id->send_cq, "read");
  pair.disconnect();
}

void nak_length(Pair& pair) {  // a message longer than the receive that it meets
  pair.listen();
  pair.dial();
  pair.take_request();
  pair.server.make_queue_pair();
  pair.server.receive(16);
  pair.accept();
  pair.client.expect(RDMA_CM_EVENT_ESTABLISHED);
  pair.server.expect(RDMA_CM_EVENT_ESTABLISHED);
  pair.client.send(64);
  pair.client.complete(pair.client.id->send_cq, "send");
  pair.disconnect();
}

void nak_rnr(Pair& pair) {  // the receive is posted after the message has knocked
  pair.connect(false);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.min_rnr_timer = 12;  // 0.64 ms
  need(ibv_modify_qp(pair.server.id->qp, &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER) == 0,
       "ibv_modify_qp");
  pair.client.send(64);
  std::this_thread::sleep_for(3ms);
  pair.server.receive(4096);
  pair.client.complete(pair.client.id->send_cq, "send");
  pair.server.complete(pair.server.id->recv_cq, "receive");
  pair.disconnect();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: cases SCENARIO CLIENT SERVER [CLIENT-IF SERVER-IF]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string name = argv[1];
  const char* from = argc > 5 ? argv[4] : "";
  const char* to = argc > 5 ? argv[5] : "";
  Pair pair;
  pair.client_address = argv[2];
  pair.server_address = argv[3];
  std::printf("%s\n", name.c_str());
  if (name == "talk") talk(pair);
  if (name == "rej-no-listener") rej_no_listener(pair);
  if (name == "rej-consumer") rej_consumer(pair);
  if (name == "rej-timeout") rej_timeout(pair);
  if (name == "rej-rep") rej_rep(pair);
  if (name == "rej-stale") rej_stale(pair, from, to);
  if (name == "mra-req") mra_req(pair);
  if (name == "mra-rep") mra_rep(pair);
  if (name == "drep-unknown") duplicates(pair, from, to);
  if (name == "nak-sequence") nak_sequence(pair, from, to);
  if (name == "nak-invalid") nak_invalid(pair, from, to);
  if (name == "nak-access") nak_access(pair);
  if (name == "nak-length") nak_length(pair);
  if (name == "nak-rnr") nak_rnr(pair);
  std::fflush(stdout);
  std::_Exit(0);  // the ids that are left are the kernel's to take down
}
