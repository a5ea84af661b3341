// The rate of this machine's network, and the part of a link's rate that is left for payload.
#pragma once

namespace paceline {

/// The bytes of payload that a link of 1 Gbit/s carries per second in each direction. Headers take
/// the rest: with both directions busy, 118.9 of 125 MB/s are left (iperf3 --bidir).
constexpr double kPayloadOfGigabit = 1e9 / 8 * 118.9 / 125;

/// Returns the rate of the fastest network card in Gbit/s; 0 if the system does not tell it.
double network_gbps();

}  // namespace paceline
