// A disk on which something goes wrong.
#pragma once

#include <cerrno>
#include <cstring>

#include "checkpoint/disk.h"
#include "paceline/error.h"

namespace paceline::testing {

/// A disk that works for a number of calls, not counting `remove`. With kFull, the next call fails
/// as on a full disk, and then the disk works again. With kDead, the next call and all later ones
/// throw Stopped, as if the process had ended, and `remove` does nothing.
class StoppingDisk : public Disk {
 public:
  enum class Then { kFull, kDead };
  struct Stopped {};  // thrown instead of the process's end

  StoppingDisk(int calls, Then then) : left_(calls), then_(then) {}

  void make_folder(const std::string& path) const override {
    count(path);
    Disk::make_folder(path);
  }
  int create(const std::string& path) const override {
    count(path);
    return Disk::create(path);
  }
  void write_at(int file, const std::string& path, std::span<const std::byte> bytes,
                std::uint64_t offset) const override {
    // Half of the write that fails reaches the file.
    if (left_ == 0) Disk::write_at(file, path, bytes.first(bytes.size() / 2), offset);
    count(path);
    Disk::write_at(file, path, bytes, offset);
  }
  void sync(int file, const std::string& path) const override {
    count(path);
    Disk::sync(file, path);
  }
  void rename(const std::string& from, const std::string& to) const override {
    count(to);
    Disk::rename(from, to);
  }
  void sync_folder(const std::string& path) const override {
    count(path);
    Disk::sync_folder(path);
  }
  void remove(const std::string& path) const override {
    if (!dead_) Disk::remove(path);
  }

 private:
  void count(const std::string& path) const {
    if (left_-- > 0) return;
    dead_ = then_ == Then::kDead;
    if (dead_) throw Stopped();
    if (left_ < -1) return;  // there is room again
    throw Error(ErrorCode::kUnavailable, "cannot write " + path + ": " + std::strerror(ENOSPC));
  }

  mutable int left_;
  const Then then_;
  mutable bool dead_ = false;
};

}  // namespace paceline::testing
