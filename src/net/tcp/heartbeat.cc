#include "net/tcp/heartbeat.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace paceline {
namespace {

constexpr char kBeat = 'H';

}  // namespace

Heartbeat::Pulse Heartbeat::tick() {
  // A full socket means that the peer does not read; its own silence will tell.
  if (ticks_++ % kTicksPerBeat == 0)
    (void)!::send(control_.get(), &kBeat, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  return listen();
}

Heartbeat::Pulse Heartbeat::listen() {
  std::array<char, 256> bytes;
  ++silent_ticks_;
  while (true) {
    // A closed control socket says nothing: the data socket tells why.
    const ssize_t got = ::recv(control_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) break;
    silent_ticks_ = 0;
    const auto end = bytes.begin() + got;
    if (std::any_of(bytes.begin(), end, [](char b) { return b != kBeat; })) return Pulse::kGarbage;
    if (std::size_t(got) < bytes.size()) break;
  }
  return silent_ticks_ >= kTicksOfDeath ? Pulse::kSilent : Pulse::kAlive;
}

}  // namespace paceline
