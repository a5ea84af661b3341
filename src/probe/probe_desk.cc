#include "probe/probe_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "paceline/error.h"

namespace paceline {
namespace {

/// The messages of each role, beside hello.
bool is_of_role(ProbeType type, ProbeRole role) {
  switch (type) {
    case ProbeType::kPing:
      return true;
    case ProbeType::kAskRoof:
    case ProbeType::kMeasure:
      return role == ProbeRole::kAsks;
    case ProbeType::kAskCount:
      return role == ProbeRole::kLeads;
    case ProbeType::kFill:
    case ProbeType::kBytes:
    case ProbeType::kFilled:
      return role == ProbeRole::kStream;
    default:
      return false;
  }
}

[[noreturn]] void refuse_message(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "[probe] " + why);
}

}  // namespace

std::string ProbeDesk::called(Caller caller, TimePoint now) {
  if (callers_.size() >= kMostCallers) return "too many callers at once";
  callers_[caller] = {.role = {}, .since = now};
  return "";
}

std::string ProbeDesk::why_not(const ProbeHello& hello, TimePoint now) const {
  if (hello.version != kProbeVersion)
    return fmt::format(
        "it measures by version {} of the protocol, and this host by version {}: "
        "take the same version of paceline on both",
        hello.version, kProbeVersion);
  if (hello.role != ProbeRole::kAsks)
    return asker_ && hello.session == session_ ? "" : "nobody measures here in that session";
  if (hello.session == 0) return "its session has no number";
  if (!asker_ && works_)
    return "this host still measures for somebody who has left: ask again in some seconds";
  if (!asker_) return "";
  if (hello.session == session_)
    return "it was called already for this measurement: two of the names are of one host";
  using std::chrono::ceil, std::chrono::seconds;
  return fmt::format("this host is being measured by {}, for {} s more at most: ask again then",
                     process_, std::max<std::int64_t>(1, ceil<seconds>(ends_ - now).count()));
}

std::string ProbeDesk::hello(Caller caller, const ProbeHello& hello, TimePoint now) {
  Known& known = callers_.at(caller);
  if (known.role) refuse_message("hello was said already");
  if (std::string why = why_not(hello, now); !why.empty()) return why;
  known.role = hello.role;
  if (hello.role != ProbeRole::kAsks) return "";
  asker_ = caller;
  session_ = hello.session;
  ends_ = now + std::min<Duration>(kLongestSession, std::chrono::seconds(hello.seconds));
  process_ = hello.process;
  return "";
}

void ProbeDesk::sent(Caller caller, ProbeType type) {
  const Known& known = callers_.at(caller);
  if (!known.role) refuse_message(name_of(type) + " came before hello");
  if (!is_of_role(type, *known.role))
    refuse_message(fmt::format("{} is no message of this caller", name_of(type)));
}

void ProbeDesk::begin_work(Caller caller) {
  if (works_ || caller != asker_) refuse_message("this host measures already");
  works_ = true;
}

std::vector<ProbeDesk::Caller> ProbeDesk::left(Caller caller) {
  callers_.erase(caller);
  if (caller != asker_) return {};
  asker_.reset();
  session_ = 0;
  process_.clear();
  std::vector<Caller> others;
  for (const auto& [other, known] : callers_) {
    if (known.role) others.push_back(other);
  }
  return others;
}

std::vector<ProbeDesk::Caller> ProbeDesk::late(TimePoint now) const {
  std::vector<Caller> late;
  for (const auto& [caller, known] : callers_) {
    if (now >= end_of(caller, known)) late.push_back(caller);
  }
  return late;
}

TimePoint ProbeDesk::due() const {
  TimePoint due = TimePoint::max();
  for (const auto& [caller, known] : callers_) due = std::min(due, end_of(caller, known));
  return due;
}

TimePoint ProbeDesk::end_of(Caller caller, const Known& known) const {
  if (!known.role) return known.since + kHelloWithin;
  return caller == asker_ ? ends_ : TimePoint::max();
}

}  // namespace paceline
