#include "launch/meeting_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/address.h"
#include "base/plain_text.h"
#include "base/print_text.h"
#include "launch/job_security.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr Duration kOneTry = std::chrono::seconds(2);
constexpr Duration kBetweenTries = std::chrono::milliseconds(200);
/// At the deadline the meeting point says which ranks are late; a guest waits this much longer for
/// that answer.
constexpr Duration kForItsWord = std::chrono::seconds(5);
constexpr Duration kClosingPatience = std::chrono::seconds(2);
/// This many callers are admitted beyond one for each rank, since callers may not have said their
/// rank yet.
constexpr std::size_t kMostStrangers = 64;
/// An ended connection is deleted this long after its end. By then no thread uses it any more.
constexpr Duration kForgottenAfter = std::chrono::seconds(5);

TimePoint present() { return std::chrono::steady_clock::now(); }

std::unique_ptr<Link> meeting_link(const std::shared_ptr<const LinkSecurity>& security) {
  LinkOptions options;
  options.security = security;
  options.refused = [](const std::string& line) {
    print_text(stderr,
               plain_lines(fmt::format("paceline: warning: the meeting point: {}\n", line)));
  };
  return make_link("tcp", options);
}

void send_to(Connection& connection, MessageType type, const std::vector<std::byte>& payload) {
  connection.send_copy(
      {.payload_bytes = std::uint32_t(payload.size()), .type = std::uint16_t(type)}, payload);
}

}  // namespace

std::span<std::byte> MeetingInbox::place_payload(const FrameHeader& header) {
  if (header.payload_bytes > kMaxHelloBytes)
    throw Error(ErrorCode::kDataLoss, "the message is too long for a meeting");
  bytes_.resize(header.payload_bytes);
  return bytes_;
}

class MeetingPoint::Caller : public MeetingInbox {
 public:
  Caller(MeetingPoint& point, PeerId id, std::shared_ptr<Connection> connection)
      : id(id), connection(std::move(connection)), point_(point) {}

  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    if (MessageType{header.type} != MessageType::kAttend)
      throw Error(ErrorCode::kDataLoss,
                  fmt::format("{} is no message of a meeting", name_of(MessageType{header.type})));
    point_.attended(*this, decode_attendance(payload));
  }
  void on_closed(const Error&) override { point_.left(*this); }

  const PeerId id;
  const std::shared_ptr<Connection> connection;
  std::optional<TimePoint> ended;

 private:
  MeetingPoint& point_;
};

MeetingPoint::MeetingPoint(const std::string& address, int size, int ps, Duration patience,
                           const std::shared_ptr<const LinkSecurity>& security)
    : meeting_(size, ps, present() + patience), link_(meeting_link(security)) {
  link_->listen(address,
                [this](std::shared_ptr<Connection> peer) { return accept(std::move(peer)); });
  clock_ = std::jthread([this](const std::stop_token& stop) { watch_the_clock(stop); });
}

MeetingPoint::~MeetingPoint() {
  clock_ = {};
  std::vector<std::shared_ptr<Connection>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& caller : callers_) {
      if (!caller->ended) open.push_back(caller->connection);
    }
  }
  const Deadline deadline = Deadline::after(kClosingPatience);
  for (const auto& connection : open) connection->close(deadline);
  link_.reset();
}

Receiver* MeetingPoint::accept(std::shared_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  std::erase_if(callers_, [](const auto& caller) {
    return caller->ended && present() - *caller->ended > kForgottenAfter;
  });
  if (callers_.size() >= kMostStrangers + meeting_.size())
    throw Error(ErrorCode::kUnavailable, "too many callers at the meeting point");
  callers_.push_back(std::make_unique<Caller>(*this, next_++, std::move(connection)));
  return callers_.back().get();
}

void MeetingPoint::attended(Caller& caller, const Attendance& attendance) {
  const std::string peer = caller.connection->peer();
  const std::string host = is_of_this_host(peer) ? "" : host_of(peer);
  const std::lock_guard lock(mutex_);
  answer(meeting_.attended(caller.id, host, attendance, present()));
  changed_.notify_all();
}

void MeetingPoint::left(Caller& caller) {
  const std::lock_guard lock(mutex_);
  meeting_.left(caller.id);
  caller.ended = present();
}

void MeetingPoint::answer(const Meeting::Answers& answers) {
  for (const Meeting::Answer& answer : answers) {
    const auto caller =
        std::ranges::find(callers_, answer.to, [](const auto& one) { return one->id; });
    if (answer.refusal.empty()) {
      send_to(*(*caller)->connection, MessageType::kRoster, encode(meeting_.roster()));
    } else {
      send_to(*(*caller)->connection, MessageType::kRefuse, encode_text(answer.refusal));
    }
  }
}

void MeetingPoint::watch_the_clock(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && meeting_.is_open()) {
    const TimePoint until = meeting_.deadline();
    changed_.wait_until(lock, stop, until,
                        [&] { return !meeting_.is_open() || meeting_.deadline() != until; });
    answer(meeting_.tick(present()));
  }
}

class MeetingGuest::Call : public MeetingInbox {
 public:
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    const MessageType type{header.type};
    const std::lock_guard lock(mutex_);
    if (type == MessageType::kRoster) {
      roster_ = decode_roster(payload);
    } else if (type == MessageType::kRefuse) {
      refusal_ = decode_text(payload, type);
    } else {
      throw Error(ErrorCode::kDataLoss,
                  fmt::format("{} is no answer of a meeting point", name_of(type)));
    }
    changed_.notify_all();
  }
  void on_closed(const Error& error) override {
    const std::lock_guard lock(mutex_);
    closed_ = error;
    changed_.notify_all();
  }

  /// Returns the roster; nothing if the connection ended or the deadline passed before the roster
  /// arrived.
  std::optional<Roster> wait(Deadline deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.time(),
                        [this] { return roster_ || !refusal_.empty() || closed_; });
    if (!refusal_.empty()) throw Error(ErrorCode::kFailedPrecondition, refusal_);
    if (closed_ && closed_->code() != ErrorCode::kUnavailable && !roster_) throw Error(*closed_);
    return roster_;
  }

  std::shared_ptr<Connection> connection;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Roster> roster_;
  std::string refusal_;
  std::optional<Error> closed_;
};

MeetingGuest::MeetingGuest(const std::shared_ptr<const LinkSecurity>& security)
    : link_(meeting_link(security)) {}

MeetingGuest::~MeetingGuest() { link_.reset(); }

Roster MeetingGuest::attend(const std::string& address, const Attendance& attendance,
                            Deadline deadline) {
  std::string why = "it did not answer";
  for (EventFd never; !deadline.passed();
       never.wait(Deadline::at(std::min(deadline.time(), present() + kBetweenTries)))) {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    try {
      call.connection = link_->connect(
          address, call, Deadline::at(std::min(deadline.time(), present() + kOneTry)));
    } catch (const Error& error) {
      const bool may_come = error.code() == ErrorCode::kUnavailable ||
                            error.code() == ErrorCode::kNotFound ||
                            error.code() == ErrorCode::kDeadlineExceeded;
      if (!may_come) throw;
      why = error.what();
      continue;
    }
    send_to(*call.connection, MessageType::kAttend, encode(attendance));
    if (std::optional<Roster> roster = call.wait(Deadline::at(deadline.time() + kForItsWord)))
      return std::move(*roster);
    why = "it went away";
  }
  throw Error(ErrorCode::kUnavailable,
              fmt::format("nobody was found there in time (--join-timeout): {}", why));
}

}  // namespace paceline
