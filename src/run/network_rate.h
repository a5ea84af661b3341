// The rate of this machine's network, and the share of it that a link uses.
#pragma once

namespace paceline {

/// The bytes of payload that a link of 1 Gbit/s carries in a second, each way. The rest are
/// headers: 118.9 MB/s of 125 are left where both ways are busy (iperf3 --bidir).
constexpr double kPayloadOfGigabit = 1e9 / 8 * 118.9 / 125;

/// The rate of the fastest network card in Gbit/s; 0 when the system does not say.
double network_gbps();

}  // namespace paceline
