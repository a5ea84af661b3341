// Maps parts of several shared memories, one after another, into one range of addresses.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "net/memory/shared_memory.h"

namespace paceline {

/// Tasks of one host cut an array at page boundaries, and each keeps a part in its own memory.
/// Through this object a reader sees the whole array. The mappings live as long as this object. Not
/// thread-safe.
class ContiguousMapping {
 public:
  /// A part begins at a multiple of this number, both in the range and in its own memory.
  static constexpr std::size_t kPageBytes = 4096;

  /// Reserves a range in which nothing is mapped yet, so that touching it faults. Throws
  /// kUnavailable if the system gives no such range.
  explicit ContiguousMapping(std::size_t bytes);
  ~ContiguousMapping();
  ContiguousMapping(const ContiguousMapping&) = delete;
  ContiguousMapping& operator=(const ContiguousMapping&) = delete;

  /// Maps bytes [offset, offset + bytes) of `memory` at position `at` of the range. Throws
  /// kUnavailable if the system refuses the mapping.
  void map(std::size_t at, std::shared_ptr<const SharedMemory> memory, std::size_t offset,
           std::size_t bytes);
  const std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  const std::size_t size_;
  std::vector<std::shared_ptr<const SharedMemory>> parts_;
};

}  // namespace paceline
