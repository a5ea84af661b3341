// What may hold a job back. Predictions name a limit before a run, and explanations name one that
// they find in a run; both use these words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace paceline {

enum class Limit : std::uint8_t {
  // Predicted and found.
  kLink,       // the link of a parameter server, of all workers or of another task is full
  kStraggler,  // one worker's steps take longer than the others'
  kRules,      // parameter servers apply rules all the time
  kInput,      // making batches takes longer than the rest of a step
  // Foreseen: limits of a job in which nothing is wrong.
  kDevices,    // devices compute all the time
  kKernels,    // the cores of hosts run kernels all the time
  kTransport,  // the transport of another system, whose numbers were given, is full
  kMemory,     // memory moves as many bytes as it can
  kCores,      // the cores are used up, not by kernels alone
  kAnswers,    // no resource is used up: steps wait for values and answers
  kOthers,     // no resource is used up: workers wait for one another
  kExchanges,  // no resource is used up: workers make local steps and exchange values between them
  kAlone,      // there is one process, whose kernels and rules follow one another
  // Found: faults that no prediction could foresee.
  kNothing,         // nothing stands out
  kNotKnown,        // the run is slow, and no measured number explains it
  kStopped,         // a task stood still
  kOtherProcesses,  // other processes use cores that the run needs
  kShortMemory,     // pages are read from a disk, or memory is short
  kDisk,            // the input waits for its files
  kBadRecords,      // the input leaves out bad records
  kInputCores,      // the input's threads lack cores
  kInputCopy,       // batches are copied to where the step reads them
  kWire,            // a link is full, and a narrower wire would be enough
  kTaskLink,        // the link of one task is slower than the links of others
  kHotShard,        // one parameter server has more work than the others
  kUnsplit,         // one parameter server has a variable that is not split
  kLock,            // contributions to one variable wait for each other
  kSlowMemory,      // for one worker, copies between host and device take longer than for others
  kCopies,          // copies between host and device
  kHostOps,         // the host computes ops for which the device has no kernels
  kLaunches,        // the number of kernels that a step launches on a device
  kWay,             // another way to distribute is faster
  kSmallBatch,      // updates take more than the examples
  kCheckpoints,     // checkpoints are written slowly
};

struct LimitName {
  std::string_view name;  // in reports (`expected.limited_by`) and files (`explain --json`)
  Limit limit;
  bool predicted = false;  // true: predictions name this limit, too
};

constexpr LimitName kLimits[] = {{"link", Limit::kLink, true},
                                 {"straggler", Limit::kStraggler, true},
                                 {"rules", Limit::kRules, true},
                                 {"input", Limit::kInput, true},
                                 {"devices", Limit::kDevices, true},
                                 {"kernels", Limit::kKernels, true},
                                 {"transport", Limit::kTransport, true},
                                 {"memory", Limit::kMemory, true},
                                 {"cores", Limit::kCores, true},
                                 {"answers", Limit::kAnswers, true},
                                 {"others", Limit::kOthers, true},
                                 {"exchanges", Limit::kExchanges, true},
                                 {"alone", Limit::kAlone, true},
                                 {"nothing", Limit::kNothing},
                                 {"not known", Limit::kNotKnown},
                                 {"stopped", Limit::kStopped},
                                 {"other processes", Limit::kOtherProcesses},
                                 {"short memory", Limit::kShortMemory},
                                 {"disk", Limit::kDisk},
                                 {"bad records", Limit::kBadRecords},
                                 {"input lacks cores", Limit::kInputCores},
                                 {"input copies", Limit::kInputCopy},
                                 {"wide wire", Limit::kWire},
                                 {"link of one task", Limit::kTaskLink},
                                 {"hot shard", Limit::kHotShard},
                                 {"unsplit variable", Limit::kUnsplit},
                                 {"lock", Limit::kLock},
                                 {"slow memory", Limit::kSlowMemory},
                                 {"copies to the device", Limit::kCopies},
                                 {"ops on the host", Limit::kHostOps},
                                 {"kernel launches", Limit::kLaunches},
                                 {"way to distribute", Limit::kWay},
                                 {"small batch", Limit::kSmallBatch},
                                 {"checkpoints", Limit::kCheckpoints}};

static_assert(std::size(kLimits) == std::size_t(Limit::kCheckpoints) + 1, "one has no name");

constexpr std::string_view name_of(Limit limit) {
  return std::ranges::find(kLimits, limit, &LimitName::limit)->name;
}

}  // namespace paceline
