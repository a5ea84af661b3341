#include "explain/finding.h"

#include <fmt/format.h>

#include "base/plain_text.h"
#include "base/printed.h"

namespace paceline {

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::kNothing:
      return "nothing";
    case Cause::kNotKnown:
      return "not known";
    case Cause::kStopped:
      return "stopped";
    case Cause::kOthers:
      return "other processes";
    case Cause::kMemory:
      return "memory";
    case Cause::kDisk:
      return "disk";
    case Cause::kInputStage:
      return "input stage";
    case Cause::kBadRecords:
      return "bad records";
    case Cause::kInputCores:
      return "input lacks cores";
    case Cause::kInputCopy:
      return "input copies";
    case Cause::kLink:
      return "link";
    case Cause::kWire:
      return "wide wire";
    case Cause::kTaskLink:
      return "link of one task";
    case Cause::kPsBusy:
      return "ps busy";
    case Cause::kHotShard:
      return "hot shard";
    case Cause::kUnsplit:
      return "unsplit variable";
    case Cause::kLock:
      return "lock";
    case Cause::kSlowDevice:
      return "slow device";
    case Cause::kSlowMemory:
      return "slow memory";
    case Cause::kCopies:
      return "copies to the device";
    case Cause::kWay:
      return "way to distribute";
    case Cause::kSmallBatch:
      return "small batch";
    case Cause::kCheckpoints:
      return "checkpoints";
  }
  return "";
}

std::string Finding::text(double steps_per_s) const {
  std::string text = sentence;
  constexpr double kWorthANumber = 1.02;
  const double from = speed > 0 ? speed : steps_per_s;
  if (!advice.empty()) {
    text += " " + advice;
    const bool counts = gain >= kWorthANumber && from > 0;
    if (counts) text += fmt::format(": {} → {} {}", rounded(from), rounded(gain * from), unit);
    text += ".";
  }
  return plain_text(text);  // names come from other tasks, or from a file
}

}  // namespace paceline
