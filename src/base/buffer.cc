#include "base/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/grouped_digits.h"
#include "paceline/error.h"

namespace paceline {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kLeastMapped = SIZE_MAX;  // sanitizers watch the heap
#else
// From this size on, a buffer has a mapping of its own. The system fills its pages with zeros when
// they are first written.
constexpr std::size_t kLeastMapped = std::size_t{4} << 20;
#endif

/// A buffer's own mapping, and the pinner that has pinned it.
struct Mapped {
  std::size_t bytes = 0;
  bool asked = false;  // a pinner was asked to pin it
  PagePinner* pinner = nullptr;
};
struct AllMapped {
  std::mutex mutex;
  std::map<const std::byte*, Mapped> by_begin;
};
// The list lives until the process ends, since memory may be freed late.
AllMapped& all_mapped() {
  static AllMapped* const all = new AllMapped;
  return *all;
}

void* map_zeros(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // The system may refuse this, which matters little: large pages are only faster.
  static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
  const std::lock_guard lock(all_mapped().mutex);
  all_mapped().by_begin[static_cast<std::byte*>(memory)] = {bytes};
  return memory;
}

void* heap_zeros(std::size_t bytes) {
  void* const memory = std::aligned_alloc(kBufferAlignment, bytes);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}

void* allocate_aligned(std::size_t bytes) {
  const std::size_t rounded = round_up(bytes == 0 ? 1 : bytes, kBufferAlignment);
  void* const memory = bytes >= kLeastMapped ? map_zeros(bytes) : heap_zeros(rounded);
  if (memory == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "not enough memory: " + grouped_digits(std::int64_t(bytes)) +
                    " bytes were asked for at once");
  }
  return memory;
}

void free_aligned(void* memory, std::size_t bytes) {
  if (bytes < kLeastMapped) return std::free(memory);
  {
    const std::lock_guard lock(all_mapped().mutex);
    const auto found = all_mapped().by_begin.find(static_cast<std::byte*>(memory));
    if (found->second.pinner != nullptr) found->second.pinner->unpin(memory);
    all_mapped().by_begin.erase(found);
  }
  ::munmap(memory, bytes);
}

}  // namespace

std::shared_ptr<void> allocate_shared_aligned(std::size_t bytes) {
  return {allocate_aligned(bytes), [bytes](void* memory) { free_aligned(memory, bytes); }};
}

void pin_pages(const void* memory, PagePinner& pinner) {
  const std::lock_guard lock(all_mapped().mutex);
  auto& by_begin = all_mapped().by_begin;
  const auto* const place = static_cast<const std::byte*>(memory);
  auto found = by_begin.upper_bound(place);
  if (found == by_begin.begin()) return;
  auto& [begin, mapped] = *--found;
  if (mapped.asked || place >= begin + mapped.bytes) return;
  mapped.asked = true;
  if (pinner.pin(const_cast<std::byte*>(begin), mapped.bytes)) mapped.pinner = &pinner;
}

void unpin_pages(PagePinner& pinner) {
  const std::lock_guard lock(all_mapped().mutex);
  for (auto& [begin, mapped] : all_mapped().by_begin) {
    if (mapped.pinner != &pinner) continue;
    pinner.unpin(const_cast<std::byte*>(begin));
    mapped = {mapped.bytes};
  }
}

Buffer::Buffer(std::size_t bytes)
    : data_(static_cast<std::byte*>(allocate_aligned(bytes)), Free(bytes)), size_(bytes) {}

void Buffer::Free::operator()(std::byte* p) const {
  if (release == nullptr) return free_aligned(p, bytes);
  release(owner, p);
}

}  // namespace paceline
