// Memory that the tasks of one host share: one writes, the others read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// A memfd, page aligned. It is sealed: nobody can make it smaller or larger, and only its maker
/// can write. What its maker changes, readers see at once, in no order but that of the frames that
/// say so. Thread-safe.
class SharedMemory {
 public:
  /// Zero-filled. Throws kUnavailable when the system gives none.
  static std::shared_ptr<SharedMemory> create(std::size_t bytes);
  /// Read-only, of another task. Throws kDataLoss unless it is sealed, so that touching it can
  /// never fault, and of a size that is neither 0 nor beyond this machine's memory. Reading what
  /// was never written takes memory all the same.
  static std::shared_ptr<const SharedMemory> open(FileDescriptor fd);
  ~SharedMemory();

  /// For its maker.
  std::span<std::byte> bytes() { return {data_, size_}; }
  /// Another task may change these bytes at any time: copy, then check.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }
  /// To be passed to a peer.
  int fd() const { return fd_.get(); }

 private:
  SharedMemory(FileDescriptor fd, std::byte* data, std::size_t size);

  FileDescriptor fd_;
  std::byte* data_;
  std::size_t size_;
};

}  // namespace paceline
