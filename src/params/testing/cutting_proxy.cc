#include "params/testing/cutting_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/address.h"
#include "net/accept/preamble.h"
#include "net/tcp/name_lookup.h"
#include "net/tcp/tcp_header.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
// The byte of a preamble that tells which of the two sockets of a connection this is
// (docs/wire.md); 0: the one for frames.
constexpr std::size_t kRoleByte = 6;

}  // namespace

CuttingProxy::CuttingProxy(std::string target) : target_(std::move(target)) {
  ListeningSocket listening = listen_at(Address{"127.0.0.1", 0});
  listening_ = std::move(listening.fd);
  address_ = listening.address;
  thread_ = std::thread([this] { run(); });
}

CuttingProxy::~CuttingProxy() {
  stop_.raise();
  thread_.join();
}

void CuttingProxy::cut(std::uint64_t first, std::uint64_t every) {
  every_ = every;
  next_cut_ = first;
}

void CuttingProxy::run() {
  while (true) {
    std::vector<pollfd> polled = {{.fd = stop_.fd(), .events = POLLIN, .revents = 0},
                                  {.fd = listening_.get(), .events = POLLIN, .revents = 0}};
    for (const auto& pair : pairs_) {
      for (const Flow* flow : {&pair->caller, &pair->target}) {
        const int fd = flow->ended ? -1 : flow->from.get();
        polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      }
    }
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    for (std::size_t i = 2; i < polled.size(); ++i) {
      Pair& pair = *pairs_[i / 2 - 1];
      if (polled[i].revents != 0 && !pair.ended) pass(pair, i % 2 == 0 ? pair.caller : pair.target);
    }
    std::erase_if(pairs_, [](const auto& pair) { return pair->ended; });
    if (polled[1].revents != 0) accept_one();
  }
}

void CuttingProxy::accept_one() {
  FileDescriptor caller(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!caller || blocked_) return;
  try {
    const Deadline deadline = Deadline::after(kPatience);
    FileDescriptor target = dial(look_up(parse_address(target_), deadline), target_, deadline);
    set_up_socket(caller.get());
    auto pair = std::make_unique<Pair>();
    pair->caller.to = target.get();
    pair->target.to = caller.get();
    pair->caller.from = std::move(caller);
    pair->target.from = std::move(target);
    pair->caller.preamble = kPreambleBytes;
    pairs_.push_back(std::move(pair));
  } catch (const Error&) {
    // Nobody listens there any more: the caller is told by the end of its socket.
  }
}

bool CuttingProxy::write_all(int fd, const std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, data, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) {
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, 1000);
      continue;
    }
    data += sent;
    bytes -= std::size_t(sent);
  }
  return true;
}

void CuttingProxy::pass(Pair& pair, Flow& flow) {
  std::byte bytes[1 << 16];
  const ssize_t read = ::recv(flow.from.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (read < 0 && errno == EAGAIN) return;
  if (read <= 0) {
    flow.ended = true;
    pair.ended =
        read < 0 || ::shutdown(flow.to, SHUT_WR) != 0 || (pair.caller.ended && pair.target.ended);
    return;
  }
  std::size_t begin = 0;
  if (flow.preamble > 0) {
    begin = std::min(flow.preamble, std::size_t(read));
    const std::size_t role = kRoleByte - (kPreambleBytes - flow.preamble);
    if (role < begin) flow.data = pair.target.data = bytes[role] == std::byte{0};
    flow.preamble -= begin;
    if (!write_all(flow.to, bytes, begin)) pair.ended = true;
  }
  if (!flow.data) {
    pair.ended = pair.ended || !write_all(flow.to, bytes + begin, std::size_t(read) - begin);
    return;
  }
  flow.waiting.insert(flow.waiting.end(), bytes + begin, bytes + read);
  pair.ended = pair.ended || !pass_frames(flow);
}

// Whole frames only. False: the connection is cut.
bool CuttingProxy::pass_frames(Flow& flow) {
  std::size_t begin = 0;
  while (flow.waiting.size() - begin >= kTcpHeaderBytes) {
    TcpHeaderBytes header;
    std::copy_n(flow.waiting.data() + begin, header.size(), header.data());
    const std::size_t bytes = kTcpFramingBytes + decode_tcp(header).payload_bytes;
    if (flow.waiting.size() - begin < bytes) break;
    if (is_cut()) return false;
    if (!write_all(flow.to, flow.waiting.data() + begin, bytes)) return false;
    begin += bytes;
  }
  flow.waiting.erase(flow.waiting.begin(), flow.waiting.begin() + std::ptrdiff_t(begin));
  return true;
}

bool CuttingProxy::is_cut() {
  const std::uint64_t frame = frames_;
  if (frame < next_cut_) {
    ++frames_;
    return false;
  }
  next_cut_ = every_ == 0 ? ~std::uint64_t{0} : frame + every_;
  ++cuts_;
  return true;
}

}  // namespace paceline
