// A descriptor that any thread can make readable, to wake a thread that waits for descriptors.
#pragma once

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

class EventFd {
 public:
  /// Throws kUnavailable if no descriptor is left.
  EventFd();
  int fd() const { return fd_.get(); }
  /// Makes the descriptor readable until it is cleared.
  void raise() const;
  void clear() const;
  /// Sleeps until raised. Returns false at the deadline, or if the deadline's descriptor becomes
  /// readable.
  bool wait(Deadline deadline) const;

 private:
  FileDescriptor fd_;
};

}  // namespace paceline
