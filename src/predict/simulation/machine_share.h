// The cores and the memory of a machine in virtual time, shared by all work that runs on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "base/virtual_time.h"

namespace paceline {

struct SimulatedMachine {
  double cores = 1;
  double bytes_per_s = 0;         // the rate of all cores together; 0: memory takes no time
  double thread_bytes_per_s = 0;  // the rate of one thread; 0: one thread reaches that of all
  // The rates of passes over several arrays at once; 0: the rates above.
  double rule_bytes_per_s = 0, thread_rule_bytes_per_s = 0;

  double rate_of_rules() const { return rule_bytes_per_s > 0 ? rule_bytes_per_s : bytes_per_s; }
};

/// Work that, if it runs alone, takes the time of its computing or of its memory traffic, whichever
/// is longer.
struct SimulatedWork {
  double core_seconds = 0;  // on one core; several threads divide it
  double bytes = 0;         // bytes that pass the memory
  double rule_bytes = 0;    // bytes of passes over several arrays at once, as rules make them
  int threads = 1;
};

/// A fluid model: at each moment, running work shares the cores in proportion to its threads, and
/// the memory in proportion to its traffic.
class MachineShare {
 public:
  MachineShare(VirtualTime& time, const SimulatedMachine& machine)
      : time_(time), machine_(machine) {}
  MachineShare(const MachineShare&) = delete;
  MachineShare& operator=(const MachineShare&) = delete;

  /// Begins the work, and calls `done` at its end.
  void run(const SimulatedWork& work, std::function<void()> done);
  /// Returns the seconds that the work takes if nothing else runs.
  double seconds_alone(const SimulatedWork& work) const;

  const SimulatedMachine& machine() const { return machine_; }
  /// The next three count what all work has taken so far: core time, bytes, and the seconds that
  /// these bytes take at the memory's full rate.
  double core_seconds() const { return core_seconds_; }
  double bytes() const { return bytes_; }
  double memory_seconds() const { return memory_seconds_; }

 private:
  struct Running {
    double left = 0;  // the seconds that the rest of the work would take alone
    double rate = 0;  // such seconds per second
    double seconds = 0, bytes = 0;
    double memory = 0;       // the share of its time in which it waits for the memory
    double full_memory = 0;  // the same share if all cores made its traffic
    double threads = 1;      // at most the number of cores
    std::function<void()> done;
  };
  /// Returns the seconds that the work's traffic takes on this many threads.
  double memory_seconds(const SimulatedWork& work, double threads) const;
  double most_threads() const { return std::max(1.0, machine_.cores); }
  double threads_of(const SimulatedWork& work) const;
  void advance();
  void set_rates();
  void finish(std::uint64_t plan);

  VirtualTime& time_;
  const SimulatedMachine machine_;
  // Short work, in the order in which it gets cores. As with a scheduler, new work may get any
  // place in this order. If the order were that of arrival, tasks would drift apart until none ever
  // waits for a core.
  std::multimap<double, Running> short_;
  std::list<Running> long_;
  std::vector<Running*> served_;  // the works of both lists that have cores
  TimePoint advanced_{};
  std::optional<TimePoint> looks_at_;  // when finish() runs next
  std::uint64_t plan_ = 0;
  double core_seconds_ = 0, bytes_ = 0, memory_seconds_ = 0;
};

}  // namespace paceline
