// Links beside a bare socket: the round trip of 8 bytes with both sides spinning, and 75 MB one
// way.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "net/inproc/inproc_hub.h"
#include "net/link.h"

namespace paceline {
namespace {

constexpr std::size_t kSmall = 8, kLarge = 75'000'000, kPiece = 4 << 20;

Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

/// Counts payload bytes; answers each frame when told to.
class Counter : public Receiver {
 public:
  std::span<std::byte> place_payload(const FrameHeader& header) override {
    return room_.span().first(header.payload_bytes);
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    if (reply_) reply_->send(header, payload);
    bytes_.fetch_add(std::int64_t(payload.size()), std::memory_order_release);
  }
  void on_closed(const Error&) override { reply_.reset(); }

  std::int64_t bytes() const { return bytes_.load(std::memory_order_acquire); }
  void reply_to(std::shared_ptr<Connection> connection) { reply_ = std::move(connection); }

 private:
  Buffer room_{kPiece};
  std::atomic<std::int64_t> bytes_{0};
  std::shared_ptr<Connection> reply_;
};

/// Two links of one kind and a connection between them.
struct Pair {
  explicit Pair(const std::string& kind, bool reply) {
    LinkOptions options;
    options.hub = std::make_shared<InprocHub>();
    far_link = make_link(kind, options);
    near_link = make_link(kind, options);
    const std::string address = far_link->listen(kind == "tcp" ? "127.0.0.1:0" : "far:0",
                                                 [&, reply](std::shared_ptr<Connection> one) {
                                                   if (reply) far.reply_to(one);
                                                   accepted = true;
                                                   return &far;
                                                 });
    connection = near_link->connect(address, near, soon());
    while (!accepted) std::this_thread::yield();
  }

  Counter far, near;
  std::atomic<bool> accepted{false};
  std::unique_ptr<Link> far_link, near_link;
  std::shared_ptr<Connection> connection;
};

void round_trip(benchmark::State& state, const std::string& kind, bool spin) {
  Pair pair(kind, true);
  std::atomic<bool> stop{false};
  if (spin) pair.near_link->set_spinning(true);
  if (spin) pair.far_link->set_spinning(true);
  std::thread far([&] {
    while (spin && !stop) pair.far_link->help();
  });
  const Buffer payload(kSmall);
  std::int64_t wanted = 0;
  for (auto _ : state) {
    pair.connection->send({}, payload.span());
    wanted += kSmall;
    while (pair.near.bytes() < wanted) {
      if (spin) pair.near_link->help();
    }
  }
  stop = true;
  far.join();
}

void one_way(benchmark::State& state, const std::string& kind) {
  Pair pair(kind, false);
  const Buffer payload(kLarge);
  std::int64_t wanted = 0;
  for (auto _ : state) {
    for (std::size_t at = 0; at < kLarge; at += kPiece)
      pair.connection->send({}, payload.span().subspan(at, std::min(kPiece, kLarge - at)));
    wanted += kLarge;
    while (pair.far.bytes() < wanted) std::this_thread::yield();
  }
  state.SetBytesProcessed(wanted);
}

/// Two connected sockets over loopback, without anything around them.
struct BarePair {
  BarePair() {
    const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof here;
    ::bind(listening, reinterpret_cast<sockaddr*>(&here), bytes);
    ::listen(listening, 1);
    ::getsockname(listening, reinterpret_cast<sockaddr*>(&here), &bytes);
    near = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(near, reinterpret_cast<sockaddr*>(&here), bytes) != 0) std::abort();
    far = ::accept(listening, nullptr, nullptr);
    ::close(listening);
    const int on = 1;
    for (int fd : {near, far}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~BarePair() {
    ::close(near);
    ::close(far);
  }
  int near = -1, far = -1;
};

bool receive_all(int fd, std::byte* to, std::size_t bytes, int flags) {
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t got = ::recv(fd, to + at, bytes - at, flags);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
    if (got > 0) at += std::size_t(got);
  }
  return true;
}

void bare_round_trip(benchmark::State& state) {
  BarePair pair;
  std::thread far([&] {
    std::array<std::byte, kSmall> bytes;
    while (receive_all(pair.far, bytes.data(), kSmall, MSG_DONTWAIT))
      if (::send(pair.far, bytes.data(), kSmall, MSG_NOSIGNAL) < 0) return;
  });
  std::array<std::byte, kSmall> bytes{};
  for (auto _ : state) {
    if (::send(pair.near, bytes.data(), kSmall, 0) < 0) break;
    receive_all(pair.near, bytes.data(), kSmall, MSG_DONTWAIT);
  }
  ::shutdown(pair.near, SHUT_RDWR);
  far.join();
}

void bare_one_way(benchmark::State& state) {
  BarePair pair;
  std::atomic<std::int64_t> done{0};
  std::thread far([&] {
    Buffer room(kPiece);
    while (true) {
      const ssize_t got = ::recv(pair.far, room.data(), room.size(), 0);
      if (got <= 0) return;
      done += got;
    }
  });
  const Buffer payload(kLarge);
  std::int64_t wanted = 0;
  for (auto _ : state) {
    for (std::size_t at = 0; at < kLarge;) {
      const ssize_t sent = ::send(pair.near, payload.data() + at, kLarge - at, 0);
      if (sent < 0) std::abort();
      at += std::size_t(sent);
    }
    wanted += kLarge;
    while (done < wanted) std::this_thread::yield();
  }
  state.SetBytesProcessed(wanted);
  ::shutdown(pair.near, SHUT_RDWR);
  far.join();
}

BENCHMARK(bare_round_trip)->UseRealTime();
BENCHMARK_CAPTURE(round_trip, tcp, "tcp", true)->UseRealTime();
BENCHMARK_CAPTURE(round_trip, inproc, "inproc", true)->UseRealTime();
BENCHMARK_CAPTURE(round_trip, tcp_threads, "tcp", false)->UseRealTime();
BENCHMARK(bare_one_way)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(one_way, tcp, "tcp")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(one_way, inproc, "inproc")->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace paceline

BENCHMARK_MAIN();
