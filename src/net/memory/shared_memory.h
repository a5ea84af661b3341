// Memory that the tasks of one host share: one writes, the others read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// A memfd that begins at a page. It is sealed: nobody can make it smaller or larger, and only its
/// maker can write. Readers see at once what the maker changes, in no order but that of the frames
/// that tell of it. Thread-safe.
class SharedMemory {
 public:
  /// Makes a memory of zeros. Throws kUnavailable when the system gives none.
  static std::shared_ptr<SharedMemory> create(std::size_t bytes);
  /// Maps the memory of another task, which can only be read here. Throws kDataLoss unless it is
  /// sealed, so that touching it can never fault, and has a size that is neither 0 nor beyond this
  /// machine's memory. Reading what was never written takes memory all the same.
  static std::shared_ptr<const SharedMemory> open(FileDescriptor fd);
  ~SharedMemory();

  /// The bytes, which only the maker may write. Must not be called for the memory of another task.
  std::span<std::byte> bytes() { return {data_, size_}; }
  /// The bytes, which another task may change at any time: copy them, then check the copy.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }
  /// The descriptor that is passed to a peer.
  int fd() const { return fd_.get(); }

 private:
  SharedMemory(FileDescriptor fd, std::byte* data, std::size_t size);

  FileDescriptor fd_;
  std::byte* data_;
  std::size_t size_;
};

}  // namespace paceline
