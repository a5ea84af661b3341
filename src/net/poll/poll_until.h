// Waits for descriptors with poll(2) until a deadline.
#pragma once

#include <poll.h>

#include <span>

#include "base/deadline.h"

namespace paceline {

/// Waits until one of the descriptors is ready. Returns 0 if one is ready (`revents` then says for
/// what), ETIME if the deadline passed, or an error number. Does not watch the deadline's
/// descriptor.
int poll_until(std::span<pollfd> descriptors, Deadline deadline);

/// Waits for `events` of one descriptor. Returns 0 if one of them happened, ETIME if the deadline
/// passed or its descriptor became readable, or an error number.
int poll_one_until(int fd, short events, Deadline deadline);

/// Returns true if `fd` becomes readable before the deadline passes and before the deadline's
/// descriptor becomes readable.
bool wait_to_read(int fd, Deadline deadline);

}  // namespace paceline
