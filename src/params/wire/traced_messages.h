// A link that names its frames on a timeline by their messages.
#pragma once

#include <memory>
#include <utility>

#include "net/wrapped/traced_link.h"
#include "params/wire/message.h"

namespace paceline {

static_assert(std::uint16_t(MessageType::kClip) < kMostFrameTypes, "the last type has a name, too");

/// Returns the link itself when `timeline` is null.
inline std::unique_ptr<Link> traced(std::unique_ptr<Link> link, Timeline* timeline) {
  if (timeline == nullptr) return link;
  return traced_link(std::move(link), *timeline,
                     [](std::uint16_t type) { return name_of(MessageType{type}); });
}

}  // namespace paceline
