// Memory that the tasks of one host share: one task writes, the others read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// A memfd, mapped as a whole. It is sealed: nobody can change its size, and only its maker can
/// write. Readers see the maker's changes at once. The order of the changes is known only from the
/// frames that announce them. Thread-safe.
class SharedMemory {
 public:
  /// Makes a memory of zeros. Throws kUnavailable if the system gives none.
  static std::shared_ptr<SharedMemory> create(std::size_t bytes);
  /// Maps another task's memory, which this side can only read. Throws kDataLoss if the size of the
  /// memory is not sealed or its pages are huge, because reading could then fault. Also throws
  /// kDataLoss if the size is 0 or beyond this machine's memory: even reading bytes that were never
  /// written uses memory. Throws kUnavailable if the system refuses the mapping.
  static std::shared_ptr<const SharedMemory> open(FileDescriptor fd);
  ~SharedMemory();

  /// The bytes, which only the maker may write. Do not call it for another task's memory.
  std::span<std::byte> bytes() { return {data_, size_}; }
  /// The bytes, which another task may change at any time: copy them, then check the copy.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }
  /// The descriptor to pass to a peer.
  int fd() const { return fd_.get(); }

 private:
  SharedMemory(FileDescriptor fd, std::byte* data, std::size_t size);

  FileDescriptor fd_;
  std::byte* data_;
  std::size_t size_;
};

}  // namespace paceline
