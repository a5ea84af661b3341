// What a stream over TCP costs the cores of this machine.
#pragma once

namespace paceline {

/// The bytes that one core sends or receives in a second, the checksum of each frame included.
struct TcpRates {
  double send = 0, receive = 0;  // 0: not known
  bool operator==(const TcpRates&) const = default;
};

/// Measures them over loopback in about 30 ms, in the time of threads and not of clocks on the
/// wall: other processes change little. Nothing is known where there is no loopback.
TcpRates measure_tcp_rates();

}  // namespace paceline
