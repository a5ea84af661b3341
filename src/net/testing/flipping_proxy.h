// A bad cable: what two tasks send each other over TCP passes through this proxy, which changes one
// bit.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "net/tcp/tcp_socket.h"
#include "net/testing/raw_socket.h"

namespace paceline {

enum class Way { kToListener, kToCaller };

/// A bit to change in the bytes that a data socket, or any encrypted socket, carries in one
/// direction. `byte` counts from 0 after the preamble. On an encrypted socket, where the preamble
/// is not visible, it counts from 0 after as many bytes as a preamble has.
struct Flip {
  Way way = Way::kToListener;
  std::size_t byte = 0;
  int bit = 0;
};

/// Accepts connections that are meant for the task at `listener`, and serves each in a thread of
/// its own.
class FlippingProxy {
 public:
  explicit FlippingProxy(std::string listener)
      : listener_(std::move(listener)), listening_(listen_at({"127.0.0.1", 0})) {
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~FlippingProxy() {
    stopped_ = true;
    ::shutdown(listening_.fd.get(), SHUT_RDWR);
    accepting_.join();
    for (Call& call : calls_) call.cut();
    for (Call& call : calls_) call.thread.join();
  }
  FlippingProxy(const FlippingProxy&) = delete;
  FlippingProxy& operator=(const FlippingProxy&) = delete;

  const std::string& address() const { return listening_.address; }
  /// Changes this bit, once, in the next data socket that carries its byte.
  void set(std::optional<Flip> flip) {
    const std::lock_guard lock(mutex_);
    flip_ = flip;
  }
  /// True if no bit was to be changed, or the bit has been changed.
  bool flipped() const {
    const std::lock_guard lock(mutex_);
    return !flip_;
  }
  /// The most bytes that one data socket has carried in this direction.
  std::size_t most_passed(Way way) const {
    const std::lock_guard lock(mutex_);
    return most_passed_[std::size_t(way)];
  }

 private:
  struct Call {
    FileDescriptor caller, listener;
    std::thread thread = {};

    void cut() const {
      ::shutdown(caller.get(), SHUT_RDWR);
      ::shutdown(listener.get(), SHUT_RDWR);
    }
  };

  void accept_all() {
    while (!stopped_) {
      pollfd called{listening_.fd.get(), POLLIN, 0};
      ::poll(&called, 1, -1);
      FileDescriptor caller(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller) continue;
      calls_.push_back({std::move(caller), RawSocket(listener_).release()});
      calls_.back().thread = std::thread([this, &call = calls_.back()] { serve(call); });
    }
  }

  void serve(const Call& call) {
    std::array<std::byte, kPreambleBytes> preamble;
    const ssize_t got = ::recv(call.caller.get(), preamble.data(), preamble.size(), MSG_WAITALL);
    if (got == ssize_t(preamble.size()) && pass(preamble, call.listener)) {
      const bool is_plain = preamble.front() == encode(Preamble{}).front();
      pass_all(call, !is_plain || decode_preamble(preamble).role == SocketRole::kData);
    }
    call.cut();
  }

  /// Passes bytes in both directions until one side closes.
  void pass_all(const Call& call, bool is_data) {
    std::array<std::size_t, 2> passed{};
    std::array<pollfd, 2> sides{{{call.caller.get(), POLLIN, 0}, {call.listener.get(), POLLIN, 0}}};
    while (::poll(sides.data(), sides.size(), -1) > 0) {
      for (const Way way : {Way::kToListener, Way::kToCaller}) {
        if (sides[std::size_t(way)].revents == 0) continue;
        const bool goes_on = pass_some(call, way, is_data, passed[std::size_t(way)]);
        if (!goes_on) return;
      }
    }
  }

  bool pass_some(const Call& call, Way way, bool is_data, std::size_t& passed) {
    const bool to_listener = way == Way::kToListener;
    std::array<std::byte, 1 << 16> room;
    const int from = (to_listener ? call.caller : call.listener).get();
    const ssize_t got = ::recv(from, room.data(), room.size(), 0);
    if (got <= 0) return false;
    const std::span<std::byte> bytes = std::span(room).first(std::size_t(got));
    if (is_data) count(bytes, way, passed);
    return pass(bytes, to_listener ? call.listener : call.caller);
  }

  static bool pass(std::span<const std::byte> bytes, const FileDescriptor& to) {
    return ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size());
  }

  void count(std::span<std::byte> bytes, Way way, std::size_t& passed) {
    const std::lock_guard lock(mutex_);
    if (flip_ && flip_->way == way && flip_->byte >= passed &&
        flip_->byte < passed + bytes.size()) {
      bytes[flip_->byte - passed] ^= std::byte(1 << flip_->bit);
      flip_.reset();
    }
    passed += bytes.size();
    std::size_t& most = most_passed_[std::size_t(way)];
    most = std::max(most, passed);
  }

  const std::string listener_;
  const ListeningSocket listening_;
  mutable std::mutex mutex_;
  std::optional<Flip> flip_;
  std::array<std::size_t, 2> most_passed_{};
  std::atomic<bool> stopped_{false};
  std::list<Call> calls_;  // one thread adds calls, until it ends
  std::thread accepting_;
};

}  // namespace paceline
