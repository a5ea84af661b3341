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
/// The bytes of a frame that only fills a stream.
constexpr std::uint32_t kProbeFillBytes = 1u << 17;
/// No other payload is longer.
constexpr std::uint32_t kMostProbeBytes = 1u << 14;
/// The streams that are measured together.
constexpr int kProbeStreams = 4;
/// A stream is filled for no longer.
constexpr std::uint32_t kMostFillMilliseconds = 120'000;

/// No number is that of a message of a job (params/wire/message.h), so that neither side takes the
/// other's for its own.
enum class ProbeType : std::uint16_t {
  kHello = 200,     // caller → server: who I am
  kWelcome = 201,   // server → caller
  kRefuse = 202,    // server → caller: why not; the server then closes
  kPing = 203,      // caller → server: what does your clock show? (step: mine does)
  kPong = 204,      // server → caller: this (offset), when I was asked (step)
  kAskRoof = 205,   // asker → server: what can your host do?
  kRoof = 206,      // server → asker
  kMeasure = 207,   // asker → server: measure the way between you and that host
  kMeasured = 208,  // server → asker: what was found, or why it was not
  kFill = 209,      // caller → server, of a stream: fill it for so long
  kBytes = 210,     // both ways, of a stream: nothing but bytes
  kFilled = 211,    // both ways, of a stream: these were all
  kAllHere = 212,   // server → caller, of a stream: and they are here
  kAskCount = 213,  // leader → server: how much has come on the streams of my session?
  kCount = 214,     // server → leader
};

std::string name_of(ProbeType type);

enum class ProbeRole : std::uint8_t {
  kAsks,    // for all that is measured in a session
  kLeads,   // a measurement between two hosts
  kStream,  // is one of its streams
};

struct ProbeHello {
  std::uint32_t version = kProbeVersion;
  ProbeRole role = ProbeRole::kAsks;
  std::uint64_t session = 0;  // a number that the asker has drawn
  std::uint32_t seconds = 0;  // for which the session lasts at most
  std::string process;        // for messages: "pid 4711 on host b"
  bool operator==(const ProbeHello&) const = default;
};

/// The abilities of a host, by the names of a hosts file.
struct ProbeRoof {
  std::map<std::string, double> numbers;
  bool operator==(const ProbeRoof&) const = default;
};

struct ProbeMeasure {
  std::string address;             // of the other server
  std::uint32_t milliseconds = 0;  // of each measurement of a rate
  bool operator==(const ProbeMeasure&) const = default;
};

/// The network between the host that has measured, "here", and the other one.
struct PairFigures {
  // Payload in a second: of one stream and of several together, to the other host and from it.
  double one_out = 0, all_out = 0, one_in = 0, all_in = 0;
  double best_round_trip_s = 0, usual_round_trip_s = 0;  // of a small frame
  double clock_ahead_s = 0, clock_doubt_s = 0;           // of the other host's clock; give or take
  bool encrypted = false;
  bool operator==(const PairFigures&) const = default;
};

struct ProbeMeasured {
  std::string failure;  // empty: there are figures
  PairFigures figures;
  bool operator==(const ProbeMeasured&) const = default;
};

/// The bytes that have arrived on the streams of a session until its last frame, and the time of
/// that, by the counting host's clock.
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
/// All throw kDataLoss naming the message. Of a hello of another version only the version is read;
/// figures and roofs are finite numbers from zero on, clocks apart.
ProbeHello decode_probe_hello(std::span<const std::byte> payload);
ProbeRoof decode_probe_roof(std::span<const std::byte> payload);
ProbeMeasure decode_probe_measure(std::span<const std::byte> payload);
ProbeMeasured decode_probe_measured(std::span<const std::byte> payload);
ProbeCount decode_probe_count(std::span<const std::byte> payload);
std::string decode_probe_text(std::span<const std::byte> payload, ProbeType type);
std::uint32_t decode_milliseconds(std::span<const std::byte> payload);

/// Throws kDataLoss when a frame of that type has no such length.
void check_probe_length(const FrameHeader& header);

}  // namespace paceline
