#include "params/worker/join_handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "params/steady_now.h"
#include "params/wire/variables.h"

namespace paceline {
namespace {

constexpr Duration kSayEvery = std::chrono::seconds(10);
constexpr Duration kFirstBackOff = std::chrono::milliseconds(20);
// A worker is to be there within a second of its ps.
constexpr Duration kLongestBackOff = std::chrono::milliseconds(500);
constexpr Duration kOneTry = std::chrono::seconds(5);
// Long enough to cost nothing, short enough for Ctrl-C.
constexpr Duration kInterruptCheck = std::chrono::milliseconds(250);

}  // namespace

JoinHandshake::JoinHandshake(const PsStoreOptions& options, Arrivals& core, Link& link)
    : options_(options),
      core_(core),
      link_(link),
      deadline_(Deadline::after(options.join_timeout)),
      incarnation_(std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count())),
      next_say_(steady_now() + options.say_after) {}

void JoinHandshake::say_waiting(const std::string& what) {
  if (steady_now() < next_say_) return;
  next_say_ = steady_now() + kSayEvery;
  if (options_.say) options_.say("waiting for " + what);
}

void JoinHandshake::check_interrupt() const {
  if (options_.check_interrupt) options_.check_interrupt();
}

bool JoinHandshake::wait(const std::string& what, Deadline deadline,
                         const std::function<bool()>& come) {
  next_say_ = steady_now() + options_.say_after;
  while (!deadline.passed()) {
    const TimePoint turn = std::min(next_say_, steady_now() + kInterruptCheck);
    if (core_.wait(Deadline::at(std::min(deadline.time(), turn)), come)) return true;
    check_interrupt();
    say_waiting(what);
  }
  return false;
}

void JoinHandshake::too_late(const PsConnection& ps, const std::string& what,
                             const std::string& why) const {
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{} {} within {:.0f} s (--join-timeout){}", ps.name(), what,
                          std::chrono::duration<double>(options_.join_timeout).count(), why));
}

bool JoinHandshake::try_once(PsConnection& ps, std::string& reason) {
  try {
    ps.connect(link_, Deadline::at(std::min(deadline_.time(), steady_now() + kOneTry))
                          .or_when_readable(core_.failure().fd()));
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    reason = error.what();
    return false;
  }
}

void JoinHandshake::connect(PsConnection& ps) {
  std::string reason, last_reason, before;
  next_say_ = steady_now() + options_.say_after;
  for (Duration back_off = kFirstBackOff; !try_once(ps, reason) || !say_hello(ps, reason);
       back_off = std::min(back_off * 3 / 2, kLongestBackOff)) {
    // One that was there and went away says more than one that is not there any more.
    if (reason != last_reason) before = std::exchange(last_reason, reason);
    if (deadline_.passed()) {
      if (!before.empty()) reason += fmt::format(" (before: {})", before);
      too_late(ps, "could not be reached", ": " + reason);
    }
    check_interrupt();
    say_waiting(fmt::format("{}: {}", ps.name(), reason));
    core_.wait(Deadline::at(std::min(deadline_.time(), steady_now() + back_off)),
               [] { return false; });
  }
  declare(ps);
}

bool JoinHandshake::say_hello(PsConnection& ps, std::string& reason) {
  ps.send_small(MessageType::kHello, encode(Hello{.version = kProtocolVersion,
                                                  .job = "worker",
                                                  .index = options_.task.index,
                                                  .cluster_id = options_.cluster_id,
                                                  .incarnation = incarnation_,
                                                  .epoch = 0,
                                                  .fingerprint = fingerprint_of(core_.variables()),
                                                  .spin = options_.spin,
                                                  .ps = ps.ps(),
                                                  .workers = int(options_.spec.workers.size()),
                                                  .wire = ps.wire(),
                                                  .credentials = {}}));
  const TimePoint say_then = next_say_;  // of all tries, not of this one
  if (!wait(ps.name(), deadline_, [&] { return ps.welcomed() || ps.turned_away(); })) {
    too_late(ps, "said nothing");
  }
  if (!ps.turned_away()) return true;
  next_say_ = say_then;
  reason = ps.why_turned_away();
  return false;
}

void JoinHandshake::declare(PsConnection& ps) {
  const Declare declare{.last_step = options_.last_step,
                        .variables = {core_.variables().begin(), core_.variables().end()},
                        .pieces = {core_.pieces().begin(), core_.pieces().end()}};
  ps.send_small(MessageType::kDeclare, encode(declare));
}

void JoinHandshake::agree(PsConnection& ps) {
  if (!wait("the chief to declare the variables to " + ps.name(), deadline_,
            [&] { return ps.declared(); })) {
    too_late(ps, "was told no variables by the chief");
  }
}

}  // namespace paceline
