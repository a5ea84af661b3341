// Counters beside values in shared memory, by which a reader sees that it has copied a chunk while
// it was written. A sequence lock (Lameter, "Effective Synchronization on Linux/NUMA Systems",
// Gelato Conference 2005): odd while somebody writes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace paceline {

/// So many bytes have one counter.
constexpr std::size_t kVersionedBytes = std::size_t{1} << 18;

/// The number of counters for so many bytes, at least one.
constexpr std::size_t version_count(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kVersionedBytes - 1) / kVersionedBytes);
}

/// While it lives, one chunk is being written. One writer of a chunk at a time.
class ChunkWriting {
 public:
  explicit ChunkWriting(std::uint64_t& version) : version_(version) { version_.fetch_add(1); }
  ~ChunkWriting() { version_.fetch_add(1, std::memory_order_release); }
  ChunkWriting(const ChunkWriting&) = delete;
  ChunkWriting& operator=(const ChunkWriting&) = delete;

 private:
  std::atomic_ref<std::uint64_t> version_;
};

/// Copies a chunk as it is at one moment, from memory that may be read-only. Returns false when it
/// is being written; `to` then holds nothing of worth.
bool copy_chunk(const std::uint64_t& version, std::span<const std::byte> from, std::byte* to);

}  // namespace paceline
