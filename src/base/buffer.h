// Aligned host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace paceline {

constexpr std::size_t kBufferAlignment = 64;

constexpr std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Zero-filled memory aligned to kBufferAlignment, never null. Throws std::bad_alloc.
std::shared_ptr<void> allocate_shared_aligned(std::size_t bytes);

/// Zero-filled, aligned memory with one owner; may be empty.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes);

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::byte> span() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace paceline
