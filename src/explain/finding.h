// The finding about a run: one cause, one task, what to change, and what that would bring.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

enum class Cause : std::uint8_t {
  kNothing,      // nothing stands out
  kNotKnown,     // it is slow, and nothing that was measured says why
  kStopped,      // a task stood still
  kOthers,       // other processes take its cores
  kMemory,       // pages are read from a disk, or memory is short
  kDisk,         // the input waits for its files
  kInputStage,   // a stage of the input is slow
  kBadRecords,   // records that are left out
  kInputCores,   // the input's threads lack cores
  kInputCopy,    // batches are copied to where the step reads them
  kLink,         // the link of a parameter server, or of every worker, is full
  kWire,         // the same, and a narrower wire would be enough
  kTaskLink,     // the link of one task is slower than those of others
  kPsBusy,       // parameter servers apply all the time
  kHotShard,     // one of them does more than the others
  kUnsplit,      // because it has a variable that is not split
  kLock,         // contributions to one variable wait for each other
  kSlowDevice,   // one worker's kernels take longer than those of others
  kSlowMemory,   // one worker's copies between host and device take longer than those of others
  kCopies,       // copies between host and device
  kWay,          // another way to distribute is faster
  kSmallBatch,   // updates take more than the examples
  kCheckpoints,  // they are written slowly
};
/// "stopped", "other processes": as `paceline explain --json` writes it.
std::string_view name_of(Cause cause);

struct Finding {
  Cause cause = Cause::kNothing;
  std::string task = {};      // "worker:2"; empty: the whole job
  std::string sentence = {};  // the cause, in words
  std::string advice = {};    // what to change; empty: nothing
  double gain = 1;            // the speed after that, as a multiple of the speed that was measured
  std::string unit = "steps/s";  // in which the speed is told
  double speed = 0;              // that was measured, in this unit; 0: the run's

  /// True when something is wrong that a user would want to be told of.
  bool is_alarm() const { return cause != Cause::kNothing; }
  /// "worker:2 is slow: … Without that: 11.2 → 14.9 steps/s." `steps_per_s` is the run's.
  std::string text(double steps_per_s) const;
};

}  // namespace paceline
