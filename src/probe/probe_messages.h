// The messages between hosts that measure a network. Format: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "net/frame.h"

namespace paceline {

constexpr std::uint32_t kProbeVersion = 1;
/// The payload in bytes of a frame that only fills a stream.
constexpr std::uint32_t kProbeFillBytes = 1u << 17;
/// The most bytes in any other payload.
constexpr std::uint32_t kMostProbeBytes = 1u << 14;
/// The number of streams that are measured together.
constexpr int kProbeStreams = 4;
/// The longest time for which a stream is filled.
constexpr std::uint32_t kMostFillMilliseconds = 120'000;

/// These numbers differ from those of a job's messages (params/wire/message.h), so that neither
/// side takes the other's messages for its own.
enum class ProbeType : std::uint16_t {
  kHello = 200,    // caller → server: who I am
  kWelcome = 201,  // server → caller
  kRefuse = 202,   // server → caller: why not; the server then closes
  // caller → server: what does your clock show? `step` is what the caller's clock shows
  kPing = 203,
  // server → caller: `offset` is what the server's clock shows, and `step` that of the question
  kPong = 204,
  kAskRoof = 205,   // asker → server: what can your host do?
  kRoof = 206,      // server → asker
  kMeasure = 207,   // asker → server: measure the network between you and that host
  kMeasured = 208,  // server → asker: the figures, or why there are none
  kFill = 209,      // caller → server, for a stream: fill it for so long
  kBytes = 210,     // both ways, on a stream: only bytes to fill it
  kFilled = 211,    // both ways, on a stream: the last bytes were sent
  kAllHere = 212,   // server → caller, on a stream: the last bytes have arrived
  // leader → server: how many bytes have arrived on the streams of my session?
  kAskCount = 213,
  kCount = 214,  // server → leader
};

std::string name_of(ProbeType type);

enum class ProbeRole : std::uint8_t {
  kAsks,    // asks for all that is measured in a session
  kLeads,   // leads a measurement between two hosts
  kStream,  // is one of the streams of that measurement
};

struct ProbeHello {
  std::uint32_t version = kProbeVersion;
  ProbeRole role = ProbeRole::kAsks;
  std::uint64_t session = 0;  // a number that the asker has drawn
  std::uint32_t seconds = 0;  // for which the session lasts at most
  std::string process;        // for messages: "pid 4711 on host b"
  bool operator==(const ProbeHello&) const = default;
};

/// What a host can do, by the names that a hosts file uses.
struct ProbeRoof {
  std::map<std::string, double> numbers;
  bool operator==(const ProbeRoof&) const = default;
};

struct ProbeMeasure {
  std::string address;             // of the other server
  std::uint32_t milliseconds = 0;  // of each measurement of a rate
  bool operator==(const ProbeMeasure&) const = default;
};

/// The network between "here", the host that has measured, and the other one.
struct PairFigures {
  // Payload bytes per second, of one stream and of several together, to the other host and from it.
  double one_out = 0, all_out = 0, one_in = 0, all_in = 0;
  double best_round_trip_s = 0, usual_round_trip_s = 0;  // of a small frame
  // How far the other host's clock is ahead, and the largest error of that number.
  double clock_ahead_s = 0, clock_doubt_s = 0;
  bool encrypted = false;
  bool operator==(const PairFigures&) const = default;
};

struct ProbeMeasured {
  std::string failure;  // empty: there are figures
  PairFigures figures;
  bool operator==(const ProbeMeasured&) const = default;
};

/// The bytes that have arrived on the streams of a session, and the arrival time of the last frame
/// among them, by the clock of the counting host.
struct ProbeCount {
  std::int64_t bytes = 0, nanoseconds = 0;
  bool operator==(const ProbeCount&) const = default;
};

std::vector<std::byte> encode(const ProbeHello& message);
std::vector<std::byte> encode(const ProbeRoof& message);
std::vector<std::byte> encode(const ProbeMeasure& message);
std::vector<std::byte> encode(const ProbeMeasured& message);
std::vector<std::byte> encode(const ProbeCount& message);
std::vector<std::byte> encode_probe_text(const std::string& text);
std::vector<std::byte> encode_milliseconds(std::uint32_t milliseconds);
/// All these functions throw kDataLoss naming the message. If a hello has another version, only its
/// version is read. The numbers in figures and roofs are finite, and, except clocks, not negative.
ProbeHello decode_probe_hello(std::span<const std::byte> payload);
ProbeRoof decode_probe_roof(std::span<const std::byte> payload);
ProbeMeasure decode_probe_measure(std::span<const std::byte> payload);
ProbeMeasured decode_probe_measured(std::span<const std::byte> payload);
ProbeCount decode_probe_count(std::span<const std::byte> payload);
std::string decode_probe_text(std::span<const std::byte> payload, ProbeType type);
std::uint32_t decode_milliseconds(std::span<const std::byte> payload);

/// Throws kDataLoss if a frame of that type cannot have this length.
void check_probe_length(const FrameHeader& header);

}  // namespace paceline
