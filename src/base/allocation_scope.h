// Tells allocations of our code from those of libraries, which we cannot prevent. Tests count both
// (allocation_hook.h); in other programs a scope costs two additions.
#pragma once

#include <cstdint>

namespace paceline {

namespace detail {
/// A global of each thread, since the allocation hook that reads it takes no arguments.
inline constinit thread_local int foreign_allocation_depth = 0;
}  // namespace detail

/// While an object lives, allocations of its thread count as a library's own. Put it around
/// oneDNN's execute, and around nothing else.
class ForeignAllocations {
 public:
  ForeignAllocations() { ++detail::foreign_allocation_depth; }
  ~ForeignAllocations() { --detail::foreign_allocation_depth; }
  ForeignAllocations(const ForeignAllocations&) = delete;
  ForeignAllocations& operator=(const ForeignAllocations&) = delete;
};

/// The allocations of all threads since the process began.
struct AllocationCounts {
  std::int64_t ours = 0;
  std::int64_t foreign = 0;
};

/// Call it only in a program in which one source file includes base/allocation_hook.h.
AllocationCounts allocation_counts();
/// Returns false where a sanitizer replaces malloc, so that no allocation is counted.
bool allocations_are_counted();

}  // namespace paceline
