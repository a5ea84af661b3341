// Marks allocations of our code apart from those of libraries, which we cannot prevent. Tests count
// both (allocation_hook.h); elsewhere a scope costs two additions.
#pragma once

#include <cstdint>

namespace paceline {

namespace detail {
/// Per thread and never shared; the allocation hook must find it without being passed anything.
inline constinit thread_local int foreign_allocation_depth = 0;
}  // namespace detail

/// While it lives, allocations of this thread count as a library's own. Put it around oneDNN's
/// execute, and around nothing else.
class ForeignAllocations {
 public:
  ForeignAllocations() { ++detail::foreign_allocation_depth; }
  ~ForeignAllocations() { --detail::foreign_allocation_depth; }
  ForeignAllocations(const ForeignAllocations&) = delete;
  ForeignAllocations& operator=(const ForeignAllocations&) = delete;
};

/// Allocations of all threads since the process began.
struct AllocationCounts {
  std::int64_t ours = 0;
  std::int64_t foreign = 0;
};

/// Only in programs with one source file that includes base/allocation_hook.h.
AllocationCounts allocation_counts();
/// False where a sanitizer owns malloc: then nothing is counted.
bool allocations_are_counted();

}  // namespace paceline
