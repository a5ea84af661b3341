// Which task saves the values at a job's end.
#pragma once

#include <cstdint>

namespace paceline {

enum class EndSave : std::uint8_t {
  kUnknown,    // some workers still train, or a task that may yet be lost is about to save
  kHere,       // this task saves
  kElsewhere,  // another task has saved, or will certainly save
};

}  // namespace paceline
