// Waits for descriptors with poll(2) until a deadline.
#pragma once

#include <poll.h>

#include <span>

#include "base/deadline.h"

namespace paceline {

/// Returns 0 when one of them is ready, as their revents say, ETIME when the deadline passed, or an
/// error number. It does not watch the deadline's descriptor.
int poll_until(std::span<pollfd> descriptors, Deadline deadline);

/// Waits for `events` of one descriptor. Returns 0 when one of them arrived, ETIME when the
/// deadline passed or its descriptor can be read, or an error number.
int poll_one_until(int fd, short events, Deadline deadline);

/// Returns false when the deadline passed before `fd` could be read.
bool wait_to_read(int fd, Deadline deadline);

}  // namespace paceline
