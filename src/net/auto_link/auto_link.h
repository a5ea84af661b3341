// Links that take shared memory between tasks of one host, and TCP between hosts.
#pragma once

#include <memory>

#include "net/link.h"

namespace paceline {

std::unique_ptr<Link> make_auto_link(const LinkOptions& options);

}  // namespace paceline
