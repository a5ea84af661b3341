// The kinds of limits that a job may have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline {

enum class LimitKind : std::uint8_t {
  kLink,       // a link is used up
  kStraggler,  // the others wait for one worker
  kDevices,    // devices compute all the time
  kKernels,    // the same on the cores of hosts
  kRules,      // a ps applies rules all the time
  kTransport,  // of another system
  kMemory,     // it is used up
  kCores,      // they are used up, not by kernels alone
  kAnswers,    // nothing is: steps wait for values and answers
  kOthers,     // the same for other workers
  kExchanges,  // what workers do between their local steps
  kAlone,      // one process: its kernels and rules follow one another
  kInput,
};

/// Returns its name in reports and files.
constexpr std::string_view name_of(LimitKind kind) {
  constexpr std::array<std::string_view, 13> kNames = {
      "link",  "straggler", "devices", "kernels",   "rules", "transport", "memory",
      "cores", "answers",   "others",  "exchanges", "alone", "input"};
  return kNames[std::size_t(kind)];
}

}  // namespace paceline
