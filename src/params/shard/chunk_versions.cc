#include "params/shard/chunk_versions.h"

#include "base/copy_bytes.h"

namespace paceline {
namespace {

#if defined(__SANITIZE_THREAD__)
// A sequence lock reads what is being written, and finds that out. tsan would call each such read a
// race, and take a minute over a chunk of them: it is not shown them, nor fences, which it does not
// know.
void copy_unseen(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
void read_fence() {}
#else
void copy_unseen(std::byte* to, const std::byte* from, std::size_t bytes) {
  copy_bytes(to, from, bytes);
}
void read_fence() { std::atomic_thread_fence(std::memory_order_acquire); }
#endif

}  // namespace

// A load writes nothing, though atomic_ref wants what could be written.
bool copy_chunk(const std::uint64_t& version, std::span<const std::byte> from, std::byte* to) {
  const std::atomic_ref counter(const_cast<std::uint64_t&>(version));
  const std::uint64_t before = counter.load(std::memory_order_acquire);
  if (before % 2 != 0) return false;
  copy_unseen(to, from.data(), from.size());
  read_fence();
  return counter.load(std::memory_order_relaxed) == before;
}

}  // namespace paceline
