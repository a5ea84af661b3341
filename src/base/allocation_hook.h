// Counts every allocation of a test program: include it in exactly one of its source files. It
// replaces malloc and its kin in the whole program, libraries included, and calls glibc's. operator
// new calls malloc, so it needs no hook.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/allocation_scope.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PACELINE_COUNTS_ALLOCATIONS false
#else
#define PACELINE_COUNTS_ALLOCATIONS true
#endif

// NOLINTBEGIN: these names and signatures are glibc's, and a program has them once.
namespace paceline::detail {
inline constinit std::atomic<std::int64_t> our_allocations{0}, foreign_allocations{0};

inline void count_allocation() {
  auto& counter = foreign_allocation_depth > 0 ? foreign_allocations : our_allocations;
  counter.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace paceline::detail

namespace paceline {
AllocationCounts allocation_counts() {
  return {detail::our_allocations.load(), detail::foreign_allocations.load()};
}
bool allocations_are_counted() { return PACELINE_COUNTS_ALLOCATIONS; }
}  // namespace paceline

#if PACELINE_COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  paceline::detail::count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  paceline::detail::count_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  paceline::detail::count_allocation();
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  paceline::detail::count_allocation();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  paceline::detail::count_allocation();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  paceline::detail::count_allocation();
  void* memory = __libc_memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}
}  // extern "C"
#endif
// NOLINTEND
