// The messages by which the processes of a job learn each other's addresses. Format: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "params/wire/message.h"

namespace paceline {

/// What a process says of itself at the meeting point.
struct Attendance {
  std::uint32_t version = kProtocolVersion;
  std::int32_t rank = 0;          // the rank of the process
  std::int32_t size = 0;          // how many processes the job has, as this process was told
  std::int32_t ps = 0;            // how many of the first ranks are parameter servers
  std::uint64_t incarnation = 0;  // a newer process of the same rank has a larger number
  std::uint16_t port = 0;         // the port at which the process will listen
  std::uint32_t patience_ms = 0;  // how long the process waits for the others
  std::string meeting;            // the host of the meeting point, as this process calls it
  std::string process;            // for messages: "pid 4711 on host b"
  bool operator==(const Attendance&) const = default;
};

/// The address of each rank.
struct Roster {
  std::vector<std::string> addresses;
  bool operator==(const Roster&) const = default;
};

std::vector<std::byte> encode(const Attendance& attendance);
std::vector<std::byte> encode(const Roster& roster);
/// Both throw kDataLoss naming the message. They check only the layout.
Attendance decode_attendance(std::span<const std::byte> payload);
Roster decode_roster(std::span<const std::byte> payload);

}  // namespace paceline
