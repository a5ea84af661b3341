// Measures the network between this host and another one.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "net/link.h"
#include "probe/probe_call.h"

namespace paceline {

class PairMeter {
 public:
  /// The other host serves this session at `address`. Once `stop` is requested, measure() ends with
  /// kCancelled.
  PairMeter(Link& link, std::string address, std::uint64_t session, std::string process,
            std::stop_token stop = {});
  ~PairMeter();

  /// Measures each of four rates for the time `each`. Throws kDeadlineExceeded if the network is
  /// too slow for that, kCancelled if it was stopped, and the errors of calls.
  PairFigures measure(Duration each);

  /// Returns the longest time that measure() takes.
  static Duration longest(Duration each);
  /// Returns the time that a measurement takes on a network without much delay.
  static Duration usual(Duration each);

 private:
  std::unique_ptr<ProbeCall> call(ProbeRole role);
  void ask_round_trips(PairFigures& figures);
  double rate_out(int streams, Duration each);
  double rate_in(int streams, Duration each);
  ProbeCount their_count();
  void let_pass(Duration duration);
  /// Returns the deadline after `duration`, or that of the whole measurement if that is earlier.
  Deadline within(Duration duration) const;
  double rate_of(const ProbeCount (&counts)[3]) const;

  Link& link_;
  const std::string address_;
  const ProbeHello hello_;
  const std::stop_token stop_;
  ProbeTally tally_;
  std::unique_ptr<ProbeCall> lead_;
  std::vector<std::unique_ptr<ProbeCall>> streams_;
  Duration warm_{};
  TimePoint ends_{};
};

}  // namespace paceline
