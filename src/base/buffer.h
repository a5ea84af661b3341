// Aligned memory, of the host or of a device.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace paceline {

constexpr std::size_t kBufferAlignment = 64;

/// Returns the least multiple of `multiple` that is at least `value`. Both are not negative.
template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Zero-filled memory aligned to kBufferAlignment, never null. Memory of several MB is taken page
/// by page when it is first written, and has large pages where the system allows it. Throws
/// kUnavailable, with the number of bytes, when there is not enough.
std::shared_ptr<void> allocate_shared_aligned(std::size_t bytes);

/// A pinner keeps pages of the host's memory in place, so that a device reads and writes them by
/// itself.
class PagePinner {
 public:
  /// Returns false if the pages cannot be pinned.
  virtual bool pin(void* begin, std::size_t bytes) = 0;
  virtual void unpin(void* begin) = 0;

 protected:
  ~PagePinner() = default;
};

/// Has `pinner` pin the mapping in which `memory` lies; the mapping is unpinned before it is freed.
/// Does nothing if a pinner was asked for this mapping before, and for memory of less than several
/// MB, which has no mapping of its own. Any thread may call it.
void pin_pages(const void* memory, PagePinner& pinner);
/// Has `pinner` unpin all memory that it pinned. Call it before the pinner is destroyed.
void unpin_pages(PagePinner& pinner);

/// Memory like that of allocate_shared_aligned, but with one owner. A buffer may be empty.
class Buffer {
 public:
  Buffer() = default;
  /// Allocates memory of the host.
  explicit Buffer(std::size_t bytes);
  /// Gives memory back to `owner`, which allocated it.
  using Release = void (*)(void* owner, std::byte* memory);
  /// Memory that a device has allocated, aligned and zero-filled. `owner` must outlive the buffer.
  Buffer(std::byte* memory, std::size_t bytes, Release release, void* owner)
      : data_(memory, Free(release, owner)), size_(bytes) {}

  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<std::byte> span() const { return {data(), size_}; }

 private:
  struct Free {
    Free() : Free(0) {}
    explicit Free(std::size_t host_bytes) : release(nullptr), owner(nullptr), bytes(host_bytes) {}
    Free(Release with, void* of) : release(with), owner(of), bytes(0) {}
    void operator()(std::byte* p) const;
    Release release;  // null: memory of the host
    void* owner;
    std::size_t bytes;  // the size of the host's memory
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace paceline
