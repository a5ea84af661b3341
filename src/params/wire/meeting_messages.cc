#include "params/wire/meeting_messages.h"

#include "params/wire/message_fields.h"

namespace paceline {

void fields(auto& wire, Of<Attendance> auto& attendance) {
  wire(attendance.version, attendance.rank, attendance.size, attendance.ps, attendance.incarnation,
       attendance.port, attendance.patience_ms, attendance.meeting, attendance.process);
}

void fields(auto& wire, Of<Roster> auto& roster) { wire(roster.addresses); }

std::vector<std::byte> encode(const Attendance& attendance) { return encode_fields(attendance); }
std::vector<std::byte> encode(const Roster& roster) { return encode_fields(roster); }

Attendance decode_attendance(std::span<const std::byte> payload) {
  return decode_fields<Attendance>(payload, "attend");
}

Roster decode_roster(std::span<const std::byte> payload) {
  return decode_fields<Roster>(payload, "roster");
}

}  // namespace paceline
