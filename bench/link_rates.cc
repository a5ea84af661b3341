#include "bench/link_rates.h"

#include <fmt/format.h>

#include "base/pinned.h"
#include "bench/timing.h"
#include "net/link.h"
#include "paceline/error.h"

namespace paceline::bench {
namespace {

struct Size {
  const char* name;
  Message message;
};
constexpr Size kRoundTrips[] = {{"8 B", {1, 8}}, {"4 KB", {1, 4000}}, {"64 KB", {1, 64000}}};
constexpr Message kLarge{18, 4'194'304};
constexpr Size kOneWay[] = {{"75 MB", kLarge}, {"100 × 10 KB", {100, 10'000}}};
constexpr double kMicro = 1e6, kGigabyte = 1e9;
constexpr double kLeastLinkSeconds = 0.1;
// The number of exchanges in one call; in each exchange, a piece goes there and back.
constexpr std::uint32_t kExchanges = 16;

bool exists(const std::string& kind) {
  if (kind == "tls") return true;
  try {
    make_link(kind, {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string bare_name(const std::string& kind) {
  if (kind == "tls") return "bare OpenSSL";
  return kind == "tcp" ? "bare socket" : "bare memory";
}

// Returns the µs of an exchange with echo, or the GB/s in one direction.
std::vector<double> values_of(const ChannelOptions& options, const std::vector<double>& seconds) {
  std::vector<double> values;
  values.reserve(seconds.size());
  for (const double time : seconds) {
    values.push_back(options.echo ? time * kMicro
                                  : double(options.message.bytes()) / time / kGigabyte);
  }
  return values;
}

// While one channel is measured, the far end of the other channel takes no core.
PairedTimes time_channels_in_turn(int repeats, std::uint32_t exchanges, Channel& first,
                                  Channel& second) {
  PairedTimes times;
  first.pause();
  second.pause();
  const auto time_one = [&](Channel& channel) {
    channel.resume();
    const auto seconds = time_calls(1, kLeastLinkSeconds, [&] { channel.exchange(exchanges); });
    channel.pause();
    return seconds.front() / exchanges;
  };
  for (int i = 0; i < repeats; ++i) {
    times.first.push_back(time_one(first));
    times.second.push_back(time_one(second));
  }
  return times;
}

void measure_beside_bare(Recorder& recorder, const std::string& kind, const char* size,
                         ChannelOptions options) {
  const std::string name =
      fmt::format("{}, {} {}", kind, size, options.echo ? "there and back" : "one way");
  recorder.progress(name);
  const Pinned near(0);
  options.near = &near;
  const auto link = make_link_channel(kind, options);
  const auto bare = make_bare_channel(kind, options);
  const auto measure = [&](const std::string& what, Channel& channel) {
    const PairedTimes times =
        time_channels_in_turn(recorder.repeats(), options.echo ? kExchanges : 1, channel, *bare);
    recorder.add(figure_beside(what, options.echo ? "us" : "GB/s", values_of(options, times.first),
                               bare_name(kind), values_of(options, times.second)));
  };
  measure(name, *link);
  // Part of the ratio comes from system calls that a link needs, which depend on the system's
  // speed. This measures those calls alone.
  if (kind != "tcp" || !options.echo) return;
  options.calls_of_link = true;
  measure(name + ", a link's calls alone", *make_socket_channel(options));
}

}  // namespace

std::vector<std::string> link_kinds() {
  std::vector<std::string> kinds;
  for (const char* kind : {"shm", "tcp", "tls", "inproc"}) {
    if (exists(kind)) kinds.emplace_back(kind);
  }
  return kinds;
}

std::unique_ptr<Channel> make_bare_channel(const std::string& kind, const ChannelOptions& options) {
  if (kind == "tls") {
    ChannelOptions encrypted = options;
    encrypted.encrypted = true;
    return make_socket_channel(encrypted);
  }
  return kind == "tcp" ? make_socket_channel(options) : make_memory_channel(options);
}

double link_rate(const std::string& kind, int repeats) {
  const auto channel = make_link_channel(kind, {kLarge, false});
  const auto seconds = time_calls(repeats, 0, [&] { channel->exchange(); });
  return double(kLarge.bytes()) / summarize(seconds).median;
}

void measure_link_roof(Recorder& recorder) {
  for (const std::string& kind : link_kinds()) {
    measure_beside_bare(recorder, kind, kRoundTrips[0].name, {kRoundTrips[0].message, true});
    measure_beside_bare(recorder, kind, kOneWay[0].name, {kOneWay[0].message, false});
  }
}

void measure_links(Recorder& recorder) {
  for (const std::string& kind : link_kinds()) {
    for (const Size& size : kRoundTrips) {
      measure_beside_bare(recorder, kind, size.name, {size.message, true});
    }
    for (const Size& size : kOneWay) {
      measure_beside_bare(recorder, kind, size.name, {size.message, false});
    }
  }
}

}  // namespace paceline::bench
