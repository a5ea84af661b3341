// A link whose frames appear on a timeline.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/link.h"
#include "trace/timeline.h"

namespace paceline {

/// Returns the name of a frame type below kMostFrameTypes. All other types are called "frame".
using NameOfFrameType = std::string (*)(std::uint16_t type);
constexpr std::uint16_t kMostFrameTypes = 91;

/// Makes a link that records an event for each frame: "send NAME" during the call that hands it to
/// the link, and "receive NAME" from its header until the receiver has handled it. `timeline` must
/// outlive the link.
std::unique_ptr<Link> traced_link(std::unique_ptr<Link> link, Timeline& timeline,
                                  NameOfFrameType name_of_type);

}  // namespace paceline
