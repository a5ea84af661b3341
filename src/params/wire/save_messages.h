// The messages between chief and ps when a checkpoint is written, and the message that the
// variables are initialised. Format: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "paceline/task_position.h"

namespace paceline {

/// A ps's answer about its shard.
struct SavedShard {
  std::string error;  // why the ps has not written the shard; empty: it has written it
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
  std::int64_t global_step = 0;  // at the mark
  struct Worker {
    std::int64_t applied = 0;  // the worker's own steps that were applied before the mark
    bool asked = false;  // the worker was asked for its state, which arrives in other messages
    bool operator==(const Worker&) const = default;
  };
  std::vector<Worker> workers;
  /// Unused records, if ps 0 shares records out; the last range has no end.
  std::vector<RecordRange> unused;
  bool operator==(const SavedShard&) const = default;
};

/// Asks whether the ps sees a file that the chief has made, with this content.
struct FindFile {
  std::string path, content;
  bool operator==(const FindFile&) const = default;
};

/// What a worker is told when the variables are initialised.
struct Initialised {
  std::int64_t global_step = 0;
  std::int64_t own_step = 0;  // the worker's next own step; only ps 0 knows it
  bool operator==(const Initialised&) const = default;
};

std::vector<std::byte> encode(const SavedShard& saved);
std::vector<std::byte> encode(const FindFile& find);
std::vector<std::byte> encode(const Initialised& initialised);
/// All decoders throw kDataLoss naming the message.
SavedShard decode_saved_shard(std::span<const std::byte> payload);
FindFile decode_find_file(std::span<const std::byte> payload);
Initialised decode_initialised(std::span<const std::byte> payload);

}  // namespace paceline
