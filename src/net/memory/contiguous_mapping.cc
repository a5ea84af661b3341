#include "net/memory/contiguous_mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/buffer.h"
#include "base/check.h"
#include "paceline/error.h"

namespace paceline {
namespace {

std::byte* checked_map(void* data, std::size_t bytes) {
  if (data != MAP_FAILED) return static_cast<std::byte*>(data);
  throw Error(ErrorCode::kUnavailable, "cannot map " + std::to_string(bytes) +
                                           " bytes of shared memory: " + std::strerror(errno));
}

}  // namespace

ContiguousMapping::ContiguousMapping(std::size_t bytes)
    : data_(checked_map(::mmap(nullptr, round_up(bytes, kPageBytes), PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                        bytes)),
      size_(round_up(bytes, kPageBytes)) {}

ContiguousMapping::~ContiguousMapping() { ::munmap(data_, size_); }

void ContiguousMapping::map(std::size_t at, std::shared_ptr<const SharedMemory> memory,
                            std::size_t offset, std::size_t bytes) {
  PACELINE_CHECK(at % kPageBytes == 0 && offset % kPageBytes == 0);
  PACELINE_CHECK(at <= size_ && bytes <= size_ - at);
  PACELINE_CHECK(offset <= memory->size() && bytes <= memory->size() - offset);
  checked_map(
      ::mmap(data_ + at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, memory->fd(), off_t(offset)),
      bytes);
  parts_.push_back(std::move(memory));
}

}  // namespace paceline
