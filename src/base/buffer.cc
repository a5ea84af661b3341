#include "base/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace paceline {
namespace {

void* allocate_aligned(std::size_t bytes) {
  const std::size_t rounded = round_up(bytes == 0 ? 1 : bytes, kBufferAlignment);
  void* memory = std::aligned_alloc(kBufferAlignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, rounded);
  return memory;
}

}  // namespace

std::shared_ptr<void> allocate_shared_aligned(std::size_t bytes) {
  return {allocate_aligned(bytes), std::free};
}

Buffer::Buffer(std::size_t bytes)
    : data_(static_cast<std::byte*>(allocate_aligned(bytes))), size_(bytes) {}

void Buffer::Free::operator()(std::byte* p) const {
  if (release == nullptr) return std::free(p);
  release(owner, p);
}

}  // namespace paceline
