// poll(2) with a deadline.
#pragma once

#include <poll.h>

#include <span>

#include "base/deadline.h"

namespace paceline {

/// 0 when one of them is ready (their revents say which), ETIME when the deadline passed, or an
/// error number.
int poll_until(std::span<pollfd> descriptors, Deadline deadline);

}  // namespace paceline
