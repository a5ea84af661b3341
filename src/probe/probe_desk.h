// Decides which callers may measure this host. A plain state machine: its inputs are the messages
// of callers and the time, and its outputs the answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "probe/probe_messages.h"

namespace paceline {

/// A host serves one session at a time, so that nothing disturbs a measurement. A session begins
/// and ends with its asker. The leaders and the streams of its measurements name the session.
class ProbeDesk {
 public:
  using Caller = std::uint64_t;
  /// A caller must say hello within this time.
  static constexpr Duration kHelloWithin = std::chrono::seconds(10);
  /// The longest time that a session may last.
  static constexpr Duration kLongestSession = std::chrono::hours(24);
  static constexpr std::size_t kMostCallers = 64;

  /// Notes a new caller. Returns the reason if the desk takes no more callers; empty if it takes
  /// this one.
  std::string called(Caller caller, TimePoint now);
  /// Notes a caller's hello. Returns the reason if the desk refuses it; empty if it is welcome.
  std::string hello(Caller caller, const ProbeHello& hello, TimePoint now);
  /// Notes a caller's message other than hello. Throws kDataLoss when the caller's role has no such
  /// message.
  void sent(Caller caller, ProbeType type);
  /// Notes that the asker wants the host to measure (ask_roof, measure). Throws kDataLoss if the
  /// host is already measuring.
  void begin_work(Caller caller);
  void end_work() { works_ = false; }
  /// Notes that a caller has gone. Returns the callers that must go, too: if the caller was the
  /// asker, all of its session.
  std::vector<Caller> left(Caller caller);
  /// Returns the callers whose time is over: those that have sent no hello, and those whose session
  /// took too long.
  std::vector<Caller> late(TimePoint now) const;
  /// Returns the time at which late() must be called next; the end of time if there is no need.
  TimePoint due() const;

  /// Returns, in words, the asker that the host serves; empty if it serves none.
  const std::string& served() const { return process_; }

 private:
  struct Known {
    std::optional<ProbeRole> role;  // none: it has not said hello
    TimePoint since{};
  };
  TimePoint end_of(Caller caller, const Known& known) const;
  std::string why_not(const ProbeHello& hello, TimePoint now) const;

  std::map<Caller, Known> callers_;
  std::optional<Caller> asker_;
  std::uint64_t session_ = 0;
  TimePoint ends_{};
  std::string process_;
  bool works_ = false;
};

}  // namespace paceline
