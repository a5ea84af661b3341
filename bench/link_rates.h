// Round trips and rates of every link, each beside the barest loop that moves the same bytes.
#pragma once

#include <string>
#include <vector>

#include "bench/channel.h"
#include "bench/recorder.h"

namespace paceline::bench {

/// Returns the kinds of links that this build has.
std::vector<std::string> link_kinds();
/// Makes the channel that a link is compared with: sockets for links that leave the host, else
/// memory.
std::unique_ptr<Channel> make_bare_channel(const std::string& kind, const ChannelOptions& options);

/// Returns the bytes per second of 75 MB in pieces of 4 MiB.
double link_rate(const std::string& kind, int repeats);

/// The links' part of the case `roof`: 8 B there and back, 75 MB one way.
void measure_link_roof(Recorder& recorder);
/// The case `links`: all sizes, beside the bare loops.
void measure_links(Recorder& recorder);

}  // namespace paceline::bench
