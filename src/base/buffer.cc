#include "base/buffer.h"

#include <cstdlib>
#include <cstring>

#include "base/grouped_digits.h"
#include "paceline/error.h"

namespace paceline {
namespace {

void* allocate_aligned(std::size_t bytes) {
  const std::size_t rounded = round_up(bytes == 0 ? 1 : bytes, kBufferAlignment);
  void* memory = std::aligned_alloc(kBufferAlignment, rounded);
  if (memory == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "not enough memory: " + grouped_digits(std::int64_t(bytes)) +
                    " bytes were asked for at once");
  }
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
