// An event file that TensorBoard opens.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/disk.h"
#include "net/poll/file_descriptor.h"
#include "summary/event.h"

namespace paceline {

/// For one thread. Others can read an event as soon as it is added, in other processes too. Throws
/// as Disk does.
class EventWriter {
 public:
  /// A new file in `folder`, which is made: events.out.tfevents.SECONDS.HOST.PID. What earlier
  /// files there say of steps after `first_step` does not count any more.
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
