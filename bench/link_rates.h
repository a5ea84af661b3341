// Round trips and rates of every link, each beside the simplest loop that moves as many bytes.
#pragma once

#include <string>
#include <vector>

#include "bench/channel.h"
#include "bench/recorder.h"

namespace paceline::bench {

/// Returns the kinds of links that this build has.
std::vector<std::string> link_kinds();
/// Makes the channel that a link is compared with: sockets for links that leave the host, and
/// memory for others.
std::unique_ptr<Channel> make_bare_channel(const std::string& kind, const ChannelOptions& options);

/// Returns the bytes per second at which 75 MB travel in pieces of 4 MiB.
double link_rate(const std::string& kind, int repeats);

/// The links' part of the case `roof`: 8 B there and back, and 75 MB in one direction.
void measure_link_roof(Recorder& recorder);
/// The case `links`: all sizes, beside the simplest loops.
void measure_links(Recorder& recorder);

}  // namespace paceline::bench
