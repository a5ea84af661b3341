// Writes a safetensors file piece by piece.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/new_file.h"
#include "checkpoint/safetensors_header.h"
#include "paceline/tensor.h"

namespace paceline {

/// The facts of one file that an index holds.
struct WrittenFile {
  std::string file;  // its name, without folders
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;  // CRC-32C of all bytes
  bool operator==(const WrittenFile&) const = default;
};

/// Writes a safetensors file. Names, types and shapes are known from the start. Values may arrive
/// in any order of tensors and in pieces of any length, so that the caller needs no second copy of
/// all values. Nothing is at `path` before finish(), and nothing is left if the object is destroyed
/// without it. For one thread.
class SafetensorsWriter {
 public:
  /// Throws as encode_header and Disk do.
  SafetensorsWriter(const std::string& path, std::vector<TensorInfo> tensors,
                    std::map<std::string, std::string> metadata = {},
                    const Disk& disk = Disk::machine());

  /// The tensors in the order in which they were given.
  std::span<const TensorInfo> tensors() const { return tensors_; }
  /// Writes the next bytes of tensors()[tensor]. Throws kInvalidArgument naming the tensor if it
  /// gets more bytes than it has; else as Disk does.
  void write(std::size_t tensor, std::span<const std::byte> bytes);
  /// Syncs the file, gives it its name, and returns its facts. Throws kFailedPrecondition naming a
  /// tensor that is not complete.
  WrittenFile finish();

 private:
  struct Progress {
    std::uint64_t offset, written, bytes;  // `offset`: from the start of the file
  };

  std::vector<TensorInfo> tensors_;
  std::vector<Progress> progress_;
  std::uint64_t bytes_ = 0;
  NewFile file_;
};

/// A tensor in memory, and its name in a file.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};
WrittenFile write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                              std::map<std::string, std::string> metadata = {},
                              const Disk& disk = Disk::machine());

}  // namespace paceline
