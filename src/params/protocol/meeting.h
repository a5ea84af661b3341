// The meeting of a job's processes, which know their rank and one common address. Each says where
// it will listen, and learns the addresses of all. A plain state machine: events and their times go
// in, answers come out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "params/protocol/outbox.h"
#include "params/wire/meeting_messages.h"

namespace paceline {

/// The meeting lasts as long as the process that holds it. So a rank that is started again finds
/// the others' addresses there.
class Meeting {
 public:
  /// An answer to a process: the roster, or the reason of a refusal.
  struct Answer {
    PeerId to = 0;
    std::string refusal;  // empty: roster() is the answer
  };
  using Answers = std::vector<Answer>;

  /// The meeting waits for `size` ranks until the deadline. The first `ps` ranks are parameter
  /// servers.
  Meeting(int size, int ps, TimePoint deadline);

  /// Call it when a process has said who it is. `host` is the host from which the process calls;
  /// empty: the meeting's host.
  Answers attended(PeerId peer, const std::string& host, const Attendance& attendance,
                   TimePoint now);
  /// Call it when the connection with the process has ended.
  void left(PeerId peer);
  /// Call it at the deadline: it tells the processes that have come which ranks are missing.
  Answers tick(TimePoint now);

  /// The moment at which tick() is due: the deadline of the least patient process.
  TimePoint deadline() const { return deadline_; }
  std::size_t size() const { return seats_.size(); }
  /// True while ranks are missing and the meeting is not given up.
  bool is_open() const { return roster_.addresses.empty() && given_up_.empty(); }
  const Roster& roster() const { return roster_; }

 private:
  struct Seat {
    std::optional<PeerId> peer;  // empty: no process has come, or the process that came has gone
    std::string host;       // the host from which the process has called; empty: the meeting's host
    Attendance attendance;  // what the present process said, or the previous one if none is here
    bool taken() const { return attendance.incarnation != 0; }
  };

  std::string why_not(const std::string& host, const Attendance& attendance) const;
  void make_roster();
  std::string missing() const;

  const int ps_;
  TimePoint deadline_;
  std::vector<Seat> seats_;  // by rank
  Roster roster_;
  std::string given_up_;  // why the meeting was given up; empty: it was not
};

}  // namespace paceline
