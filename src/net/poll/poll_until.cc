#include "net/poll/poll_until.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace paceline {

int poll_until(std::span<pollfd> descriptors, Deadline deadline) {
  while (true) {
    const Duration left = std::max(deadline.left(), Duration(0));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), Duration(left - seconds).count()};
    const int ready = ::ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
    if (ready > 0) return 0;
    if (ready == 0) return ETIME;
    if (errno != EINTR) return errno;
  }
}

int poll_one_until(int fd, short events, Deadline deadline) {
  std::array<pollfd, 2> waited{{{fd, events, 0}, {deadline.descriptor(), POLLIN, 0}}};
  const int failed = poll_until(waited, deadline);
  return failed == 0 && waited.front().revents == 0 ? ETIME : failed;
}

bool wait_to_read(int fd, Deadline deadline) { return poll_one_until(fd, POLLIN, deadline) == 0; }

}  // namespace paceline
