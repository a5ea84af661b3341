// Who may ask what of a host that lets itself be measured. A plain state machine: what callers say
// and the time go in, and what they are answered comes out.
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

/// A host serves one session at a time, so that nothing disturbs what is measured. A session begins
/// with its asker and ends with it; the leaders and the streams of its measurements name it.
class ProbeDesk {
 public:
  using Caller = std::uint64_t;
  /// A caller says hello within this time.
  static constexpr Duration kHelloWithin = std::chrono::seconds(10);
  /// No session lasts longer.
  static constexpr Duration kLongestSession = std::chrono::hours(24);
  static constexpr std::size_t kMostCallers = 64;

  /// Somebody has called. Returns why nobody more is taken; empty: it is one of the callers.
  std::string called(Caller caller, TimePoint now);
  /// A caller has said hello. Returns why it is refused; empty: it is welcome.
  std::string hello(Caller caller, const ProbeHello& hello, TimePoint now);
  /// A caller has sent a message other than hello. Throws kDataLoss when that is none of its role.
  void sent(Caller caller, ProbeType type);
  /// The asker wants the host to measure (ask_roof, measure). Throws kDataLoss while it does so
  /// already.
  void begin_work(Caller caller);
  void end_work() { works_ = false; }
  /// A caller has gone. Returns those who go with it: if it was the asker, all of its session.
  std::vector<Caller> left(Caller caller);
  /// Returns the callers whose time is over: they said no hello, or their session took too long.
  std::vector<Caller> late(TimePoint now) const;
  /// The moment at which late() is due next; the end of time if it is not.
  TimePoint due() const;

  /// The asker that is served, in words; empty: nobody is.
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
