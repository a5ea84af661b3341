#include "probe/prober.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "base/failure_text.h"
#include "base/printed.h"
#include "base/this_process.h"
#include "paceline/error.h"
#include "predict/roof.h"
#include "probe/probe_server.h"
#include "run/network_rate.h"

namespace paceline {
namespace {

using std::chrono::seconds;

constexpr Duration kToCall = seconds(5), kToMeasureRoof = seconds(60);
constexpr Duration kUsualRoof = std::chrono::milliseconds(1200);

std::uint64_t drawn_session() {
  std::random_device random;
  return (std::uint64_t(random()) << 32 | random()) | 1;
}

std::string gbps_text(double rate) { return rounded(rate / kPayloadOfGigabit, 3); }

std::string milliseconds_text(double s) { return rounded(1e3 * s, 3); }

PredictedHost host_of_roof(const ProbeRoof& roof) {
  return host_of(HostNumbers(roof.numbers.begin(), roof.numbers.end()));
}

/// The figures of one direction of a pair.
struct OneWay {
  int from = 0, to = 0;
  double one = 0, all = 0, clock_ahead_s = 0;
  double best() const { return std::max(one, all); }
};

std::vector<OneWay> ways_of(const ProbedPair& pair) {
  const PairFigures& it = *pair.figures;
  return {{pair.first, pair.second, it.one_out, it.all_out, it.clock_ahead_s},
          {pair.second, pair.first, it.one_in, it.all_in, -it.clock_ahead_s}};
}

}  // namespace

bool Probed::is_whole() const {
  return std::ranges::all_of(missing, &std::string::empty) &&
         std::ranges::all_of(pairs,
                             [](const ProbedPair& pair) { return pair.figures.has_value(); });
}

Prober::Prober(Probing probing) : probing_(std::move(probing)), session_(drawn_session()) {}

Prober::~Prober() {
  servers_.clear();
  link_.reset();
}

std::size_t Prober::pair_count() const {
  return probing_.hosts.size() * (probing_.hosts.size() - 1) / 2;
}

std::string Prober::subject() const {
  if (pair_count() == 1) return "2 hosts and what lies between them";
  return fmt::format("{} hosts and the {} pairs of them", probing_.hosts.size(), pair_count());
}

Duration Prober::longest() const {
  return probing_.hosts.size() * (kToCall + kToMeasureRoof) +
         pair_count() * (PairMeter::longest(probing_.each) + kToCall);
}

Duration Prober::usual() const {
  return probing_.hosts.size() * kUsualRoof + pair_count() * PairMeter::usual(probing_.each);
}

void Prober::call_all() {
  link_ = probe_link(probing_.security, probing_.say);
  const auto longest_s = std::chrono::ceil<seconds>(longest()).count();
  const ProbeHello hello{
      .session = session_, .seconds = std::uint32_t(longest_s), .process = this_process()};
  std::string why;
  for (const ProbedHost& host : probing_.hosts) {
    Server& server = servers_.emplace_back();
    if (host.address.empty()) continue;
    try {
      server.call = std::make_unique<ProbeCall>(*link_, host.address, hello,
                                                ProbeCalling{Deadline::after(kToCall)});
    } catch (const Error& error) {
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", host.name, error.what());
    }
  }
  if (why.empty()) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("not all hosts can be measured (`paceline probe` runs on each of them, "
                          "with the same key): {}",
                          why));
}

Probed Prober::measure() {
  call_all();
  Probed probed;
  for (std::size_t host = 0; host < probing_.hosts.size(); ++host) measure_roof(host, probed);
  const int hosts = int(probing_.hosts.size());
  for (int first = 0; first < hosts; ++first) {
    for (int second = first + 1; second < hosts; ++second) {
      measure_pair(probed.pairs.emplace_back(ProbedPair{first, second, {}}));
      const ProbedPair& pair = probed.pairs.back();
      const std::string names = fmt::format("pair {} of {}, {} and {}", probed.pairs.size(),
                                            pair_count(), probed.hosts[std::size_t(first)].name,
                                            probed.hosts[std::size_t(second)].name);
      if (!pair.figures) {
        probing_.say(fmt::format("{}: not measured: {}", names, pair.missing));
        continue;
      }
      probing_.say(fmt::format("{}: {} Gbit/s there, {} back, {} ms to and fro", names,
                               gbps_text(std::max(pair.figures->one_out, pair.figures->all_out)),
                               gbps_text(std::max(pair.figures->one_in, pair.figures->all_in)),
                               milliseconds_text(pair.figures->usual_round_trip_s)));
    }
  }
  return probed;
}

void Prober::measure_roof(std::size_t number, Probed& probed) {
  Server& server = servers_[number];
  std::string& missing = probed.missing.emplace_back();
  PredictedHost& host = probed.hosts.emplace_back();
  try {
    if (server.call == nullptr) {
      host = probing_.roof();
    } else {
      server.call->send(ProbeType::kAskRoof);
      host = host_of_roof(decode_probe_roof(
          server.call->wait(ProbeType::kRoof, Deadline::after(kToMeasureRoof)).payload));
    }
  } catch (const std::exception& error) {
    missing = server.lost = failure_text(error);
  }
  host.name = probing_.hosts[number].name;
  host.machine = int(number);
  if (!missing.empty())
    return probing_.say(fmt::format("{}: not measured: {}", host.name, missing));
  std::string text = fmt::format(
      "{}: {}, {} GFLOP/s, {} GB/s", host.name, counted(std::int64_t(host.cores), "core"),
      rounded(1e-9 * host.flops_per_s, 3), rounded(1e-9 * host.bytes_per_s, 3));
  if (is_beside_others(host.others_share)) text += ", measured " + beside_others(host.others_share);
  probing_.say(text);
}

void Prober::measure_pair(ProbedPair& pair) {
  for (const int host : {pair.first, pair.second}) {
    Server& server = servers_[std::size_t(host)];
    if (server.lost.empty() && server.call != nullptr) server.lost = server.call->ended();
    if (!server.lost.empty()) pair.missing = server.lost;
  }
  if (!pair.missing.empty()) return;
  try {
    pair.figures = figures_of(pair);
  } catch (const std::exception& error) {
    pair.missing = failure_text(error);
  }
}

PairFigures Prober::figures_of(const ProbedPair& pair) {
  const std::string& address = probing_.hosts[std::size_t(pair.second)].address;
  Server& server = servers_[std::size_t(pair.first)];
  if (server.call == nullptr)
    return PairMeter(*link_, address, session_, this_process()).measure(probing_.each);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(probing_.each).count();
  ProbeMeasured measured;
  try {
    server.call->send(ProbeType::kMeasure,
                      encode(ProbeMeasure{address, std::uint32_t(milliseconds)}));
    const Deadline deadline = Deadline::after(PairMeter::longest(probing_.each) + kToCall);
    measured = decode_probe_measured(server.call->wait(ProbeType::kMeasured, deadline).payload);
  } catch (const Error& error) {
    server.lost = error.what();
    throw;
  }
  if (measured.failure.empty()) return measured.figures;
  throw Error(ErrorCode::kUnavailable, measured.failure);
}

DescribedHosts described(const Probed& probed) {
  DescribedHosts all;
  std::vector<int> place;  // of each host, among those that are described; −1: it is not
  for (std::size_t i = 0; i < probed.hosts.size(); ++i) {
    const bool known = probed.missing[i].empty();
    place.push_back(known ? int(all.hosts.size()) : -1);
    if (known) all.hosts.push_back(probed.hosts[i]);
  }
  for (const ProbedPair& pair : probed.pairs) {
    const int first = place[std::size_t(pair.first)], second = place[std::size_t(pair.second)];
    if (first < 0 || second < 0) continue;
    if (!pair.figures) {
      all.pairs.push_back({.link = {.from = first, .to = second}, .missing = pair.missing});
      all.pairs.push_back({.link = {.from = second, .to = first}, .missing = pair.missing});
      continue;
    }
    const double one_way = pair.figures->best_round_trip_s / 2;
    for (const OneWay& way : ways_of(pair)) {
      const int from = place[std::size_t(way.from)], to = place[std::size_t(way.to)];
      PredictedHost &sender = all.hosts[std::size_t(from)], &receiver = all.hosts[std::size_t(to)];
      sender.link_bytes_per_s = std::max(sender.link_bytes_per_s, way.best());
      receiver.receive_bytes_per_s = std::max(receiver.receive_bytes_per_s, way.best());
      const double to_switch = one_way / 2;
      sender.latency_s = sender.latency_s == 0 ? to_switch : std::min(sender.latency_s, to_switch);
      all.pairs.push_back({.link = {from, to, way.best(), way.one, one_way},
                           .round_trip_s = pair.figures->usual_round_trip_s,
                           .clock_ahead_s = way.clock_ahead_s,
                           .clock_doubt_s = pair.figures->clock_doubt_s});
    }
  }
  return all;
}

std::string probed_text(const Probed& probed) {
  std::size_t width = 4;
  for (const PredictedHost& host : probed.hosts) width = std::max(width, host.name.size());
  std::string text = fmt::format("{:<{}}  {:<{}}  {:>8}  {:>9}  {:>18}  {}\n", "from", width, "to",
                                 width, "1 stream", "4 streams", "round trip, best", "clock ahead");
  bool encrypted = false, plain = false;
  for (const ProbedPair& pair : probed.pairs) {
    const auto name = [&](int host) { return probed.hosts[std::size_t(host)].name; };
    if (!pair.figures) {
      text += fmt::format("{:<{}}  {:<{}}  not measured: {}\n", name(pair.first), width,
                          name(pair.second), width, pair.missing);
      continue;
    }
    const PairFigures& it = *pair.figures;
    (it.encrypted ? encrypted : plain) = true;
    for (const OneWay& way : ways_of(pair)) {
      text +=
          fmt::format("{:<{}}  {:<{}}  {:>8}  {:>9}  {:>18}  {} ms ± {}\n", name(way.from), width,
                      name(way.to), width, gbps_text(way.one), gbps_text(way.all),
                      fmt::format("{}, {} ms", milliseconds_text(it.usual_round_trip_s),
                                  milliseconds_text(it.best_round_trip_s)),
                      milliseconds_text(way.clock_ahead_s), milliseconds_text(it.clock_doubt_s));
    }
  }
  if (!encrypted && !plain) return text;
  text += fmt::format("Rates in Gbit/s, of frames as a job sends them{}.\n",
                      encrypted && plain ? ", encrypted where they leave a host"
                      : encrypted        ? ", encrypted"
                                         : ", not encrypted");
  return text;
}

}  // namespace paceline
