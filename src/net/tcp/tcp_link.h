// Links between processes and hosts over TCP. Preamble, control connection and heartbeats:
// docs/wire.md.
#pragma once

#include <memory>

#include "net/link.h"

namespace paceline {

std::unique_ptr<Link> make_tcp_link(const LinkOptions& options);

}  // namespace paceline
