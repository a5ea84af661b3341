// An event file that TensorBoard opens.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/disk.h"
#include "net/poll/file_descriptor.h"
#include "summary/event.h"

namespace paceline {

/// Writes an event file. For one thread. Other processes can read an event as soon as it is added.
/// Throws as Disk does.
class EventWriter {
 public:
  /// Makes `folder`, and a new file in it: events.out.tfevents.SECONDS.HOST.PID. From now on,
  /// earlier files there no longer count for steps after `first_step`.
  EventWriter(const std::string& folder, std::int64_t first_step,
              const Disk& disk = Disk::machine());

  const std::string& path() const { return path_; }
  /// Sets the event's time to now.
  void add(SummaryEvent event);

 private:
  const Disk& disk_;
  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace paceline
