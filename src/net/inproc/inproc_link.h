// Links between threads of one process. An address is any name that is unique within a hub.
#pragma once

#include <memory>

#include "net/inproc/inproc_hub.h"
#include "net/link.h"

namespace paceline {

/// Makes a link that reaches the other links of `hub`, which must not be null.
std::unique_ptr<Link> make_inproc_link(const LinkOptions& options, std::shared_ptr<InprocHub> hub);

}  // namespace paceline
