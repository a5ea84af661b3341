// A call of a host that can be measured.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "net/link.h"
#include "probe/probe_messages.h"

namespace paceline {

/// A frame that has arrived.
struct ProbeFrame {
  FrameHeader header;
  std::vector<std::byte> payload;
  TimePoint at{};
};

/// Counts bytes as they arrive, on any number of streams.
class ProbeTally {
 public:
  void add(std::size_t bytes);
  ProbeCount count() const;

 private:
  mutable std::mutex mutex_;
  ProbeCount count_;
};

/// What a call is made with. Once `stop` is requested, waits end with kCancelled. `tally`, which
/// may be null, counts the bytes that fill the stream, and must outlive the call.
struct ProbeCalling {
  Deadline deadline;
  std::stop_token stop = {};
  ProbeTally* tally = nullptr;
};

/// The call is connected from its constructor to its destructor.
class ProbeCall : public Receiver {
 public:
  /// Sends a hello and waits for the welcome. Throws kFailedPrecondition with the reason of a
  /// refusal, and what Link::connect throws.
  ProbeCall(Link& link, const std::string& address, const ProbeHello& hello, ProbeCalling calling);
  ~ProbeCall() override;
  ProbeCall(const ProbeCall&) = delete;
  ProbeCall& operator=(const ProbeCall&) = delete;

  void send(ProbeType type, const std::vector<std::byte>& payload = {}, std::uint64_t step = 0);
  /// Waits for the next frame of that type. Throws kDeadlineExceeded, the error that has ended the
  /// connection, or kFailedPrecondition with the reason of a refusal.
  ProbeFrame wait(ProbeType type, Deadline deadline);
  const std::shared_ptr<Connection>& connection() const { return connection_; }
  /// Why the connection has ended; empty while it has not.
  std::string ended() const;
  /// Waits until this time. If the connection or the wait ends earlier with an error, throws it.
  void rest(TimePoint until);

  std::span<std::byte> place_payload(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_closed(const Error& error) override;

 private:
  void close();
  void refuse_stopped() const;

  const std::string address_;
  const ProbeCalling calling_;
  std::vector<std::byte> bytes_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<ProbeType, ProbeFrame> arrived_;
  std::optional<Error> closed_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace paceline
