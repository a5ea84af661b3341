#include "net/tcp/heartbeat.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr char kBeat = 'H';

}  // namespace

Heartbeat::Pulse Heartbeat::tick(bool heard) {
  // A full socket means that the peer does not read; its own silence will tell.
  if (silence_.beat_is_due()) {
    char beat = kBeat;
    const iovec part{&beat, 1};
    control_.stream->write({&part, 1});
  }
  const Sound sound = listen();
  if (sound == Sound::kGarbage) return Pulse::kGarbage;
  const bool dead = silence_.tick(heard || sound == Sound::kBeats);
  return dead ? Pulse::kSilent : Pulse::kAlive;
}

// The system of a stopped process goes on acknowledging its beats.
bool Heartbeat::is_acknowledged(Duration lately) const {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(control_.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return true;
  int waiting = 0;  // bytes; without a carrier they may not even have been sent
  if (::ioctl(control_.fd.get(), SIOCOUTQ, &waiting) != 0) return true;
  return waiting == 0 || std::chrono::milliseconds(info.tcpi_last_ack_recv) < lately;
}

Heartbeat::Sound Heartbeat::listen() try {
  std::array<char, 256> bytes;
  Sound sound = Sound::kNothing;
  while (true) {
    // A closed control socket says nothing: the data socket tells why.
    const iovec part{bytes.data(), bytes.size()};
    const std::ptrdiff_t got = control_.stream->read({&part, 1});
    if (got <= 0) return sound;
    sound = Sound::kBeats;
    const auto end = bytes.begin() + got;
    if (std::any_of(bytes.begin(), end, [](char b) { return b != kBeat; })) return Sound::kGarbage;
    if (std::size_t(got) < bytes.size() && !control_.stream->holds_unread()) return sound;
  }
} catch (const Error&) {
  return Sound::kGarbage;  // the stream says so
}

}  // namespace paceline
