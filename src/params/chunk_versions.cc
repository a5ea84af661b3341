#include "params/chunk_versions.h"

namespace paceline {
namespace {

// That a sanitizer does not know fences matters little: it sees no other mapping's writes either.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
void read_fence() { std::atomic_thread_fence(std::memory_order_acquire); }
#pragma GCC diagnostic pop

}  // namespace

// A load writes nothing, though atomic_ref wants what could be written.
bool copy_chunk(const std::uint64_t& version, std::span<const std::byte> from, std::byte* to) {
  const std::atomic_ref counter(const_cast<std::uint64_t&>(version));
  const std::uint64_t before = counter.load(std::memory_order_acquire);
  if (before % 2 != 0) return false;
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
  read_fence();
  return counter.load(std::memory_order_relaxed) == before;
}

}  // namespace paceline
