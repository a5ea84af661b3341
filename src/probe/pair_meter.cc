#include "probe/pair_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "paceline/error.h"
#include "probe/stream_pump.h"
#include "trace/clock_samples.h"

namespace paceline {
namespace {

using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::seconds;

constexpr Duration kCallWithin = seconds(5), kAnswerWithin = seconds(10);
constexpr int kRoundTrips = 64;
constexpr Duration kRoundTripsWithin = seconds(3);
/// A stream reaches its full pace after this time plus some round trips, at the latest after
/// kLongestWarm.
constexpr Duration kWarm = milliseconds(300), kLongestWarm = seconds(5);
constexpr int kWarmRoundTrips = 10;
/// The streams are filled for this much longer than the measurement takes.
constexpr Duration kMargin = milliseconds(100);
/// The last bytes must arrive within this time after a measurement has ended.
constexpr Duration kDrainWithin = seconds(10);

TimePoint moment() { return std::chrono::steady_clock::now(); }

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// Returns the time of the clock that a host shows its users. That clock may be set at any time,
/// but a measurement is so short that the rate of the clock matters little.
TimePoint shown_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return TimePoint(duration_cast<Duration>(now));
}

}  // namespace

PairMeter::PairMeter(Link& link, std::string address, std::uint64_t session, std::string process,
                     std::stop_token stop)
    : link_(link),
      address_(std::move(address)),
      hello_{.session = session, .process = std::move(process)},
      stop_(std::move(stop)) {}

PairMeter::~PairMeter() = default;

Duration PairMeter::longest(Duration each) {
  return kCallWithin + kRoundTripsWithin + 4 * (each + kMargin + kLongestWarm + kDrainWithin);
}

Duration PairMeter::usual(Duration each) { return 4 * (each + kWarm) + milliseconds(200); }

std::unique_ptr<ProbeCall> PairMeter::call(ProbeRole role) {
  ProbeHello hello = hello_;
  hello.role = role;
  return std::make_unique<ProbeCall>(link_, address_, hello,
                                     ProbeCalling{within(kCallWithin), stop_, &tally_});
}

PairFigures PairMeter::measure(Duration each) {
  PairFigures figures;
  ends_ = moment() + longest(each);
  lead_ = call(ProbeRole::kLeads);
  figures.encrypted = lead_->connection()->encrypted();
  ask_round_trips(figures);
  const Duration trip =
      duration_cast<Duration>(std::chrono::duration<double>(figures.usual_round_trip_s));
  warm_ = std::min<Duration>(kLongestWarm, kWarm + kWarmRoundTrips * trip);
  for (int i = 0; i < kProbeStreams; ++i) streams_.push_back(call(ProbeRole::kStream));
  figures.one_out = rate_out(1, each);
  figures.one_in = rate_in(1, each);
  figures.all_out = rate_out(kProbeStreams, each);
  figures.all_in = rate_in(kProbeStreams, each);
  return figures;
}

void PairMeter::ask_round_trips(PairFigures& figures) {
  std::vector<double> trips;
  ClockSamples clocks;
  const Deadline until = Deadline::after(kRoundTripsWithin);
  while (trips.empty() || (int(trips.size()) < kRoundTrips && !until.passed())) {
    const TimePoint asked = moment(), shown = shown_time();
    lead_->send(ProbeType::kPing, {}, std::uint64_t(trips.size()));
    const ProbeFrame answer = lead_->wait(ProbeType::kPong, within(kAnswerWithin));
    if (answer.header.step != trips.size())
      throw Error(ErrorCode::kDataLoss, "[probe] pong: it answers nothing that was asked");
    const Duration trip = answer.at - asked;
    trips.push_back(in_seconds(trip));
    clocks.add(
        clock_sample(shown, TimePoint(Duration(std::int64_t(answer.header.offset))), shown + trip));
    let_pass({});
  }
  const ClockLine line =
      estimate_clock(clocks.all(), clocks.all().front().at, clocks.all().back().at, 0);
  figures.clock_ahead_s = in_seconds(line.offset);
  figures.clock_doubt_s = in_seconds(line.uncertainty);
  std::ranges::sort(trips);
  figures.best_round_trip_s = trips.front();
  figures.usual_round_trip_s = trips[trips.size() / 2];
}

Deadline PairMeter::within(Duration duration) const {
  return Deadline::at(std::min<TimePoint>(moment() + duration, ends_));
}

void PairMeter::let_pass(Duration duration) { lead_->rest(within(duration).time()); }

ProbeCount PairMeter::their_count() {
  lead_->send(ProbeType::kAskCount);
  return decode_probe_count(lead_->wait(ProbeType::kCount, within(kAnswerWithin)).payload);
}

// Only bytes that arrive after the streams have reached their pace count.
double PairMeter::rate_of(const ProbeCount (&counts)[3]) const {
  const auto& [begin, before, after] = counts;
  const double bytes = double(after.bytes) - double(before.bytes);
  const double nanoseconds = double(after.nanoseconds) - double(before.nanoseconds);
  if (before.bytes > begin.bytes && bytes > 0 && nanoseconds > 0) return 1e9 * bytes / nanoseconds;
  throw Error(ErrorCode::kDeadlineExceeded,
              fmt::format("too little came over the link with {} while it was measured: a longer "
                          "time (--seconds) may tell its rate",
                          address_));
}

double PairMeter::rate_out(int streams, Duration each) {
  std::vector<std::unique_ptr<StreamPump>> pumps;
  pumps.reserve(std::size_t(streams));
  const ProbeCount begin = their_count();
  for (int i = 0; i < streams; ++i) {
    pumps.push_back(std::make_unique<StreamPump>(streams_[std::size_t(i)]->connection(),
                                                 warm_ + each + kMargin));
  }
  let_pass(warm_);
  const ProbeCount before = their_count();
  let_pass(each);
  const ProbeCount after = their_count();
  const Deadline drained = within(kDrainWithin);
  for (int i = 0; i < streams; ++i) streams_[std::size_t(i)]->wait(ProbeType::kAllHere, drained);
  return rate_of({begin, before, after});
}

double PairMeter::rate_in(int streams, Duration each) {
  const auto time = duration_cast<milliseconds>(warm_ + each + kMargin);
  const ProbeCount begin = tally_.count();
  for (int i = 0; i < streams; ++i) {
    streams_[std::size_t(i)]->send(ProbeType::kFill,
                                   encode_milliseconds(std::uint32_t(time.count())));
  }
  let_pass(warm_);
  const ProbeCount before = tally_.count();
  let_pass(each);
  const ProbeCount after = tally_.count();
  const Deadline drained = within(kDrainWithin);
  for (int i = 0; i < streams; ++i) streams_[std::size_t(i)]->wait(ProbeType::kFilled, drained);
  return rate_of({begin, before, after});
}

}  // namespace paceline
