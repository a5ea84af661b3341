// A new file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "checkpoint/disk.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

/// Writes PATH.part, and renames it when it is committed. The destructor removes a file that was
/// not committed. For one thread. Throws as Disk does.
class NewFile {
 public:
  explicit NewFile(std::string path, const Disk& disk = Disk::machine());
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& path() const { return path_; }
  void write_at(std::span<const std::byte> bytes, std::uint64_t offset);
  /// Returns the CRC-32C of the first `bytes` bytes, which it reads back.
  std::uint32_t checksum(std::uint64_t bytes) const;
  /// Syncs the bytes to the device, then the name, then the folder that holds the name.
  void commit();

 private:
  const std::string path_, unfinished_;
  const Disk& disk_;
  FileDescriptor file_;
};

}  // namespace paceline
