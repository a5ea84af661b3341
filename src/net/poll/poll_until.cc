#include "net/poll/poll_until.h"

#include <algorithm>
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

}  // namespace paceline
