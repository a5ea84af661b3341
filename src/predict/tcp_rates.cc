#include "predict/tcp_rates.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/pinned.h"
#include "net/poll/file_descriptor.h"

namespace paceline {
namespace {

constexpr std::size_t kPassBytes = std::size_t{1} << 20, kPieceBytes = std::size_t{256} << 10;
// Each pass goes over a part of the memory that no other one has touched, at both ends.
constexpr std::size_t kPasses = TcpMeter::kBytes / (2 * kPassBytes);

/// The time of both ends' threads in one pass.
struct PassSeconds {
  double send = 0, receive = 0;
  double sum() const { return send + receive; }
};

// The system does a part of the work now in the sender's time and now in the receiver's, so that
// only their sum says how fast a pass was. Returns the mean of the middle third.
PassSeconds usual_pass(std::vector<PassSeconds> passes) {
  std::ranges::sort(passes, {}, &PassSeconds::sum);
  const std::size_t third = passes.size() / 3, counted = passes.size() - 2 * third;
  PassSeconds usual;
  for (std::size_t i = third; i < third + counted; ++i) {
    usual.send += passes[i].send / double(counted);
    usual.receive += passes[i].receive / double(counted);
  }
  return usual;
}

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// The two ends of a connection over loopback.
struct Loopback {
  FileDescriptor sender, receiver;
  bool connected = false;
};

Loopback connect_loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof address;
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Loopback ends;
  if (!listener) return ends;
  if (::bind(listener.get(), at, bytes) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), at, &bytes) != 0) {
    return ends;
  }
  ends.sender = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(ends.sender.get(), at, bytes) != 0) return ends;
  ends.receiver = FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ends.connected = bool(ends.receiver);
  return ends;
}

// Moves the bytes piece by piece, and looks at each as the checksum of a frame does. Returns the
// seconds of this thread; 0 when the connection has ended.
template <typename Move>
double timed_pass(std::span<std::byte> all, const Move& move) {
  const double begun = thread_seconds();
  std::uint32_t sum = 0;
  for (std::size_t done = 0; done < all.size();) {
    const auto rest = all.subspan(done, std::min(kPieceBytes, all.size() - done));
    const ssize_t moved = move(rest);
    if (moved <= 0) return 0;
    sum = crc32c(rest.first(std::size_t(moved)), sum);
    done += std::size_t(moved);
  }
  volatile std::uint32_t seen = sum;  // so that it is computed
  static_cast<void>(seen);
  return thread_seconds() - begun;
}

}  // namespace

TcpRates TcpMeter::measure(StreamEnds ends) const {
  const Loopback loopback = connect_loopback();
  if (!loopback.connected) return {};
  const Pinned here(0);
  std::vector<PassSeconds> passes;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    const auto sent = memory_.subspan(2 * pass * kPassBytes, kPassBytes);
    const auto received = memory_.subspan((2 * pass + 1) * kPassBytes, kPassBytes);
    PassSeconds seconds;
    std::thread receiver([&] {
      if (ends == StreamEnds::kOnTwoCores) here.leave();
      seconds.receive = timed_pass(received, [&](std::span<std::byte> rest) {
        return ::recv(loopback.receiver.get(), rest.data(), rest.size(), 0);
      });
      // Nobody waits for ever.
      if (seconds.receive <= 0) ::shutdown(loopback.receiver.get(), SHUT_RDWR);
    });
    seconds.send = timed_pass(sent, [&](std::span<std::byte> rest) {
      return ::send(loopback.sender.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    });
    if (seconds.send <= 0) ::shutdown(loopback.sender.get(), SHUT_RDWR);
    receiver.join();
    if (seconds.send > 0 && seconds.receive > 0) passes.push_back(seconds);
  }
  if (passes.empty()) return {};
  const PassSeconds usual = usual_pass(std::move(passes));
  return {.send = kPassBytes / usual.send, .receive = kPassBytes / usual.receive};
}

}  // namespace paceline
