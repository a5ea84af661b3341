// The two sides of a meeting: the process that holds it, and the processes that attend it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "net/link.h"
#include "params/protocol/meeting.h"

namespace paceline {

/// Receives the frames of a meeting into memory of its own.
class MeetingInbox : public Receiver {
 public:
  std::span<std::byte> place_payload(const FrameHeader& header) override;

 private:
  std::vector<std::byte> bytes_;
};

/// Holds a meeting at an address, by driving the state machine `Meeting` with the frames of a link.
/// The destructor ends the meeting, and closes the connections of the processes that wait there.
class MeetingPoint {
 public:
  /// Begins to wait for `size` ranks, of which the first `ps` are ps tasks, at most as long as
  /// `patience`. Throws what Link::listen throws.
  MeetingPoint(const std::string& address, int size, int ps, Duration patience,
               const std::shared_ptr<const LinkSecurity>& security);
  ~MeetingPoint();
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

 private:
  class Caller;

  Receiver* accept(std::shared_ptr<Connection> connection);
  void attended(Caller& caller, const Attendance& attendance);
  void left(Caller& caller);
  void answer(const Meeting::Answers& answers);
  void watch_the_clock(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  Meeting meeting_;
  std::vector<std::unique_ptr<Caller>> callers_;
  PeerId next_ = 1;
  std::unique_ptr<Link> link_;
  std::jthread clock_;
};

/// Attends a meeting, and stays connected to it.
class MeetingGuest {
 public:
  explicit MeetingGuest(const std::shared_ptr<const LinkSecurity>& security);
  ~MeetingGuest();
  MeetingGuest(const MeetingGuest&) = delete;
  MeetingGuest& operator=(const MeetingGuest&) = delete;

  /// Waits for the roster; while the address does not answer, calls it again and again. Throws
  /// kFailedPrecondition with the meeting's reason, and kUnavailable if nobody answers by the
  /// deadline.
  Roster attend(const std::string& address, const Attendance& attendance, Deadline deadline);

 private:
  class Call;

  std::unique_ptr<Link> link_;
  std::vector<std::unique_ptr<Call>> calls_;  // one for each try; the last one counts
};

}  // namespace paceline
