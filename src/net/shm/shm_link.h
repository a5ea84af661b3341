// Links between tasks of one host through shared memory. Tasks find each other through the TCP
// address of the listener: docs/wire.md.
#pragma once

#include <memory>

#include "net/link.h"

namespace paceline {

enum class OtherHosts { kRefused, kOverTcp };

/// "shm" when other hosts are refused, else "auto". Another network namespace is another host.
std::unique_ptr<Link> make_shm_link(const LinkOptions& options, OtherHosts others);

}  // namespace paceline
