// Where memory lies.
#pragma once

namespace paceline {

/// The host's memory (the default), or the memory of one device, which only that device reaches.
class MemorySpace {
 public:
  MemorySpace() = default;
  /// `device` only identifies the space and is never dereferenced; null means the host.
  explicit MemorySpace(const void* device) : device_(device) {}
  bool host() const { return device_ == nullptr; }
  bool operator==(const MemorySpace&) const = default;

 private:
  const void* device_ = nullptr;
};

}  // namespace paceline
