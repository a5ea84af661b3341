#include "predict/machine_facts.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/cache_folder.h"
#include "base/cores.h"
#include "base/crc32c.h"
#include "base/pinned.h"
#include "base/printed.h"
#include "net/poll/file_descriptor.h"
#include "predict/cipher_rate.h"
#include "predict/core_trip.h"
#include "predict/hosts_file.h"
#include "predict/message_cost.h"
#include "predict/roof.h"
#include "run/report/circumstances.h"

namespace paceline {
namespace {

using RoofJson = nlohmann::json;

bool is_of(const RoofJson& entry, DType precision, int threads) {
  return entry.is_object() &&
         entry.value("precision", RoofJson()) == RoofJson(name_of(precision)) &&
         entry.value("threads", RoofJson()) == RoofJson(threads);
}

bool is_rate(const RoofJson& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number() && found->get<double>() > 0;
}

std::optional<Roof> roof_of(const RoofJson& entry) {
  if (!is_rate(entry, "flops_per_s") || !is_rate(entry, "bytes_per_s") ||
      !is_rate(entry, "rule_bytes_per_s") || !is_rate(entry, "cache_bytes")) {
    return std::nullopt;
  }
  // An entry without this share is from an older version, which may have measured while other
  // programs ran.
  const auto others = entry.find("others_share");
  const bool noted = others != entry.end() && others->is_number();
  return Roof{.flops_per_s = entry["flops_per_s"].get<double>(),
              .bytes_per_s = entry["bytes_per_s"].get<double>(),
              .rule_bytes_per_s = entry["rule_bytes_per_s"].get<double>(),
              .link_bytes_per_s = 0,
              .cache_bytes = entry["cache_bytes"].get<std::size_t>(),
              .others_share = noted ? others->get<double>() : 1};
}

RoofJson entry_of(const Roof& roof, DType precision, int threads) {
  return {{"precision", name_of(precision)},           {"threads", threads},
          {"flops_per_s", roof.flops_per_s},           {"bytes_per_s", roof.bytes_per_s},
          {"rule_bytes_per_s", roof.rule_bytes_per_s}, {"cache_bytes", roof.cache_bytes},
          {"others_share", roof.others_share}};
}

void take_higher(Roof& roof, const std::optional<Roof>& kept) {
  if (!kept) return;
  roof.flops_per_s = std::max(roof.flops_per_s, kept->flops_per_s);
  roof.bytes_per_s = std::max(roof.bytes_per_s, kept->bytes_per_s);
  roof.rule_bytes_per_s = std::max(roof.rule_bytes_per_s, kept->rule_bytes_per_s);
  roof.others_share = std::min(roof.others_share, kept->others_share);
}

}  // namespace

std::optional<Roof> RoofCache::find(DType precision, int threads) const {
  const RoofJson roofs = file_.read();
  for (const RoofJson& entry : roofs) {
    if (is_of(entry, precision, threads)) return roof_of(entry);
  }
  return std::nullopt;
}

Roof RoofCache::measure(DType precision, int threads) const {
  Roof roof = measure_(precision, threads);
  file_.change([&](const RoofJson& kept) {
    RoofJson roofs = RoofJson::array();
    for (const RoofJson& entry : kept) {
      if (is_of(entry, precision, threads)) {
        take_higher(roof, roof_of(entry));
      } else {
        roofs.push_back(entry);
      }
    }
    roofs.insert(roofs.begin(), entry_of(roof, precision, threads));
    return roofs;
  });
  return roof;
}

Roof RoofCache::roof(DType precision, int threads) const {
  const std::optional<Roof> kept = find(precision, threads);
  if (kept && !is_beside_others(kept->others_share)) return *kept;
  return measure(precision, threads);
}

namespace {

constexpr std::size_t kPassBytes = std::size_t{1} << 20, kPieceBytes = std::size_t{256} << 10;
// At both ends, each pass covers a part of the memory that no other pass has touched.
constexpr std::size_t kPasses = TcpMeter::kBytes / (2 * kPassBytes);

/// The time of each end's thread in one pass.
struct PassSeconds {
  double send = 0, receive = 0;
  double sum() const { return send + receive; }
};

// The system charges part of the work sometimes to the sender and sometimes to the receiver, so
// only the sum of both says how fast a pass was. Returns the mean of the middle third.
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

// Moves the bytes piece by piece, and computes the checksum (CRC32C) of each piece as for a frame.
// Returns the CPU seconds of this thread; 0 if the connection has ended.
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
  volatile std::uint32_t seen = sum;  // so that the compiler keeps the sum
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
      // If receiving fails, this ends the sender's wait.
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

namespace {

// A thread's least share of the rate of all threads: on every machine so far, one thread reached
// more.
constexpr double kLeastOfThread = 0.6;

std::string file_in_cache(const std::string& kind) {
  const std::string folder = cache_folder();
  return folder.empty() ? "" : fmt::format("{}/{}-{}.json", folder, kind, host_name());
}

HostCache host_cache() {
  return HostCache(file_in_cache(fmt::format("host-{}-cores", usable_cores())));
}

std::int64_t seconds_since_epoch() {
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::system_clock;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

SeenHost this_host() {
  return host_cache().usual(seconds_since_epoch(), core_trip_seconds(), measured_host);
}

std::string noted_host_text() {
  const std::int64_t now = seconds_since_epoch();
  const std::optional<HostCache::Noted> noted = host_cache().newest(now);
  if (!noted) return "";
  std::string text = fmt::format(
      "{} GFLOP/s, {} GB/s, measured {} min ago", rounded(noted->host.flops_per_s * 1e-9, 3),
      rounded(noted->host.bytes_per_s * 1e-9, 3), (now - noted->at) / 60);
  if (is_beside_others(noted->host.others_share)) {
    text += " " + beside_others(noted->host.others_share);
  }
  return text;
}

PredictedHost measured_host() {
  constexpr RoofSeconds kSeconds = {.products = 0.04, .memory = 0.02};
  const int cores = usable_cores();
  RoofMeter meter(DType::kFloat32, cores);
  const Roof all = meter.measure(kSeconds);
  const double cached_rules = meter.measure_cached_rules(kSeconds.memory);
  const ThreadRates one = cores > 1 ? meter.measure_thread(kSeconds)
                                    : ThreadRates{all.bytes_per_s, all.rule_bytes_per_s};
  // A program that runs beside a measurement can only lower the measured rate.
  const auto of_thread = [](double rate, double of_all) {
    return std::clamp(rate, kLeastOfThread * of_all, of_all);
  };
  const TcpMeter tcp(meter.memory());
  const TcpRates between = tcp.measure(StreamEnds::kOnTwoCores);
  const TcpRates within = tcp.measure(StreamEnds::kOnOneCore);
  const MessageCost over_tcp = measured_message_cost("tcp");
  const MessageCost over_shm = measured_message_cost("shm");
  return {.name = "this machine",
          .cores = double(cores),
          .flops_per_s = all.flops_per_s,
          .bytes_per_s = all.bytes_per_s,
          .thread_bytes_per_s = of_thread(one.bytes_per_s, all.bytes_per_s),
          .rule_bytes_per_s = all.rule_bytes_per_s,
          .thread_rule_bytes_per_s = of_thread(one.rule_bytes_per_s, all.rule_bytes_per_s),
          .cached_rule_bytes_per_s = std::max(cached_rules, all.rule_bytes_per_s),
          .tcp_send_bytes_per_s = between.send,
          .tcp_receive_bytes_per_s = between.receive,
          .core_tcp_send_bytes_per_s = within.send,
          .core_tcp_receive_bytes_per_s = within.receive,
          .cipher_bytes_per_s = measured_cipher_rate(),
          .tcp_message_s = over_tcp.core_s,
          .tcp_trip_s = over_tcp.trip_s,
          .shm_message_s = over_shm.core_s,
          .shm_trip_s = over_shm.trip_s,
          .core_trip_s = core_trip_seconds(),
          .others_share = all.others_share};
}

SeenHost host_of_moment() {
  const std::array hosts = {measured_host(), measured_host(), measured_host()};
  const PredictedHost host = usual_host(hosts);
  return {host, host_cache().note({host, seconds_since_epoch()})};
}

RoofCache this_roof_cache() { return RoofCache(file_in_cache("roof")); }

PaceCache this_pace_cache() { return PaceCache(file_in_cache("pace")); }

}  // namespace paceline
