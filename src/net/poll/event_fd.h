// A descriptor that any thread can make readable, to wake one that waits for descriptors.
#pragma once

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

class EventFd {
 public:
  /// Throws kUnavailable when no descriptor is left.
  EventFd();
  int fd() const { return fd_.get(); }
  /// Makes the descriptor readable until it is cleared.
  void raise() const;
  void clear() const;
  /// Sleeps until it is raised. Returns false at the deadline, or when the deadline's descriptor
  /// can be read.
  bool wait(Deadline deadline) const;

 private:
  FileDescriptor fd_;
};

}  // namespace paceline
