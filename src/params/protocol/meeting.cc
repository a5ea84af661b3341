#include "params/protocol/meeting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/address.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kMostNamed = 8;

std::string difference(const char* what, int theirs, int ours) {
  return fmt::format("it says {} {}, and the meeting point {}", what, theirs, ours);
}

bool is_host(const std::string& text) {
  try {
    return text.find('=') == text.npos && parse_address(text_of(Address{text, 1})).port == 1;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Meeting::Meeting(int size, int ps, TimePoint deadline)
    : ps_(ps), deadline_(deadline), seats_(std::size_t(size)) {}

std::string Meeting::why_not(const std::string& host, const Attendance& attendance) const {
  if (attendance.version != kProtocolVersion)
    return difference("that its protocol version is", int(attendance.version),
                      int(kProtocolVersion));
  if (attendance.size != int(seats_.size()))
    return difference("that the number of processes is", attendance.size, int(seats_.size()));
  if (attendance.ps != ps_) return difference("--ps", attendance.ps, ps_);
  if (attendance.rank < 0 || attendance.rank >= attendance.size)
    return fmt::format("there is no rank {} of {}", attendance.rank, attendance.size);
  if (attendance.incarnation == 0 || attendance.port == 0 || !is_host(attendance.meeting))
    return "it does not say where it will listen";
  if (!given_up_.empty()) return given_up_;
  const Seat& seat = seats_[std::size_t(attendance.rank)];
  if (seat.peer)
    return fmt::format("rank {} has come already ({}), and two processes cannot have one rank",
                       attendance.rank, seat.attendance.process);
  if (!roster_.addresses.empty() && seat.host != host)
    return fmt::format(
        "rank {} was at {}, where the others look for it, and comes back from "
        "another host: start all processes again",
        attendance.rank, roster_.addresses[std::size_t(attendance.rank)]);
  return "";
}

Meeting::Answers Meeting::attended(PeerId peer, const std::string& host,
                                   const Attendance& attendance, TimePoint now) {
  if (std::string why = why_not(host, attendance); !why.empty()) return {{peer, std::move(why)}};
  seats_[std::size_t(attendance.rank)] = {peer, host, attendance};
  if (!is_open()) return {{peer, ""}};
  deadline_ =
      std::min<TimePoint>(deadline_, now + std::chrono::milliseconds(attendance.patience_ms));
  if (!std::ranges::all_of(seats_, [](const Seat& seat) { return seat.peer.has_value(); }))
    return {};
  make_roster();
  Answers answers;
  for (const Seat& seat : seats_) answers.push_back({*seat.peer, ""});
  return answers;
}

void Meeting::left(PeerId peer) {
  const auto seat = std::ranges::find(seats_, std::optional(peer), &Seat::peer);
  if (seat != seats_.end()) seat->peer.reset();
}

Meeting::Answers Meeting::tick(TimePoint now) {
  if (!is_open() || now < deadline_) return {};
  given_up_ = missing();
  Answers answers;
  for (const Seat& seat : seats_) {
    if (seat.peer) answers.push_back({*seat.peer, given_up_});
  }
  return answers;
}

// Processes of this host are listed under the host name by which processes of other hosts call the
// meeting point, or under the loopback address if there are no other hosts.
void Meeting::make_roster() {
  const auto other =
      std::ranges::find_if(seats_, [](const Seat& seat) { return !seat.host.empty(); });
  const std::string here = other == seats_.end() ? "127.0.0.1" : other->attendance.meeting;
  for (const Seat& seat : seats_) {
    roster_.addresses.push_back(
        text_of({seat.host.empty() ? here : seat.host, seat.attendance.port}));
  }
}

std::string Meeting::missing() const {
  std::string ranks, gone;
  int count = 0;
  for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
    const Seat& seat = seats_[rank];
    if (seat.peer || ++count > kMostNamed) continue;
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
    if (seat.taken())
      gone += fmt::format("; rank {} came ({}) and went", rank, seat.attendance.process);
  }
  if (count > kMostNamed) ranks += fmt::format(" and {} more", count - kMostNamed);
  return fmt::format("of {} processes rank {} {} not there in time (--join-timeout){}",
                     seats_.size(), ranks, count == 1 ? "was" : "were", gone);
}

}  // namespace paceline
