// Links between threads of one process. Addresses are any names, unique within a hub.
#pragma once

#include <memory>

#include "net/link.h"

namespace paceline {

std::unique_ptr<Link> make_inproc_link(const LinkOptions& options);

}  // namespace paceline
