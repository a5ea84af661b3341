// Why a connection ends, and what its receiver is told of that.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "paceline/error.h"

namespace paceline {

/// Says that connecting to the address took longer than the deadline allows.
Error error_of_slow_dialling(const std::string& address);
/// Says that who listens there takes calls and does not answer.
Error error_of_silence(const std::string& address);
/// Says that this side has closed the connection in good order.
Error error_of_closing_here(const std::string& peer);
/// Says that this side has closed it, and that the peer has not taken in time what was queued.
Error error_of_closing_late(const std::string& peer);
/// Makes an error of the exception being handled, which reading or a receiver has thrown.
Error error_of_current_exception(const std::string& peer);

/// Thread-safe: whoever ends a connection notes the cause, and the earliest one stays.
class ConnectionEnd {
 public:
  explicit ConnectionEnd(std::string peer) : peer_(std::move(peer)) {}

  void note(const Error& error);

  /// Returns the error that was noted, or one that says that the peer has gone. `position` says
  /// where in a message it has gone, and may be empty.
  Error reason(const std::string& position) const;

 private:
  const std::string peer_;
  mutable std::mutex mutex_;
  std::optional<Error> cause_;
};

}  // namespace paceline
