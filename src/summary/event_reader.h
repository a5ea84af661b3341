// Reads the events of a file, which any program may have written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/input_file.h"
#include "summary/event.h"

namespace paceline {

/// Reads an event file. For one thread. An incomplete record counts as the end of the file, since a
/// program may still be writing it.
class EventReader {
 public:
  /// Throws as InputFile does.
  explicit EventReader(const std::string& path) : file_(path) {}

  /// Returns the next event; nothing at the end. Throws kDataLoss naming file and offset if a
  /// checksum differs or the record holds no event.
  std::optional<SummaryEvent> next();

 private:
  std::string read(std::uint64_t offset, std::uint64_t size) const;
  bool follows(std::uint64_t size) const { return size <= file_.size() - offset_; }
  [[noreturn]] void refuse(const std::string& why) const;

  InputFile file_;
  std::uint64_t offset_ = 0;  // of the next record
};

}  // namespace paceline
