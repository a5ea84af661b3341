// Who saves the values of a job's end.
#pragma once

#include <cstdint>

namespace paceline {

enum class EndSave : std::uint8_t {
  kUnknown,    // some still train, or a task that may yet be lost is about to save
  kHere,       // this task is to
  kElsewhere,  // another one has, or will for certain
};

}  // namespace paceline
