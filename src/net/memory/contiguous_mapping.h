// Maps parts of several shared memories one after the other into one range of addresses.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "net/memory/shared_memory.h"

namespace paceline {

/// Tasks of one host cut an array between pages, and each keeps a part in its own memory; a reader
/// sees the whole here. What is mapped lives as long as this object. Not thread-safe.
class ContiguousMapping {
 public:
  /// A part begins at a multiple of this, both in the range and in its memory.
  static constexpr std::size_t kPageBytes = 4096;

  /// Takes a range in which nothing is mapped yet, so that touching it faults. Throws kUnavailable
  /// when the system gives no such range.
  explicit ContiguousMapping(std::size_t bytes);
  ~ContiguousMapping();
  ContiguousMapping(const ContiguousMapping&) = delete;
  ContiguousMapping& operator=(const ContiguousMapping&) = delete;

  /// Maps [offset, offset + bytes) of the memory at `at` in the range. Throws kUnavailable when the
  /// system maps nothing there.
  void map(std::size_t at, std::shared_ptr<const SharedMemory> memory, std::size_t offset,
           std::size_t bytes);
  const std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  const std::size_t size_;
  std::vector<std::shared_ptr<const SharedMemory>> parts_;
};

}  // namespace paceline
