#include "net/poll/event_fd.h"

#include <sys/eventfd.h>

#include "net/poll/poll_until.h"
#include "paceline/error.h"

namespace paceline {

EventFd::EventFd() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!fd_) throw Error(ErrorCode::kUnavailable, "no descriptor left for an eventfd");
}

void EventFd::raise() const { [[maybe_unused]] const auto done = ::eventfd_write(fd(), 1); }

void EventFd::clear() const {
  eventfd_t count = 0;
  [[maybe_unused]] const auto done = ::eventfd_read(fd(), &count);
}

bool EventFd::wait(Deadline deadline) const { return wait_to_read(fd(), deadline); }

}  // namespace paceline
