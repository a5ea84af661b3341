// The part of the file system that saving needs. Tests replace it by a disk that is full, or that
// stops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace paceline {

/// The calls to the file system by which checkpoints are saved. Any thread may make them. Every
/// call but `remove` throws an Error that names the path and the system's reason: kNotFound if a
/// file or folder cannot be made, kUnavailable if a file cannot be written or renamed (a full
/// disk).
class Disk {
 public:
  virtual ~Disk() = default;
  /// Returns the file system of this machine.
  static const Disk& machine();

  /// Makes the folder and its parents. It is no error if the folder exists already.
  virtual void make_folder(const std::string& path) const;
  /// Creates an empty file, or replaces an existing one by it. The caller closes it.
  virtual int create(const std::string& path) const;
  virtual void write_at(int file, const std::string& path, std::span<const std::byte> bytes,
                        std::uint64_t offset) const;
  /// Makes sure that everything written to the file is on the device.
  virtual void sync(int file, const std::string& path) const;
  virtual void rename(const std::string& from, const std::string& to) const;
  /// Makes sure that the names in the folder are on the device.
  virtual void sync_folder(const std::string& path) const;
  /// Removes a file, or a folder with its content. A path that is missing or cannot be removed is
  /// not an error.
  virtual void remove(const std::string& path) const;
};

}  // namespace paceline
