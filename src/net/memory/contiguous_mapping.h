// Parts of several shared memories, one after the other at one range of addresses.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "net/memory/shared_memory.h"

namespace paceline {

/// What tasks of one host cut between pages and each of them keeps in its own memory, a reader sees
/// as a whole. Not thread-safe; what it maps lives as long as it.
class ContiguousMapping {
 public:
  /// A part begins at multiples of this, in the range and in its memory.
  static constexpr std::size_t kPageBytes = 4096;

  /// Nothing is mapped yet, and touching it faults. Throws kUnavailable when the system gives no
  /// such range.
  explicit ContiguousMapping(std::size_t bytes);
  ~ContiguousMapping();
  ContiguousMapping(const ContiguousMapping&) = delete;
  ContiguousMapping& operator=(const ContiguousMapping&) = delete;

  /// [offset, offset + bytes) of the memory stands at `at`. Throws kUnavailable when the system
  /// maps nothing there.
  void map(std::size_t at, std::shared_ptr<const SharedMemory> memory, std::size_t offset,
           std::size_t bytes);
  const std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  const std::size_t size_;
  std::vector<std::shared_ptr<const SharedMemory>> parts_;
};

}  // namespace paceline
