// Why a connection ends, and what its receiver is told of that.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "paceline/error.h"

namespace paceline {

/// This side has closed it, in good order; or what was queued then was not taken in time.
Error error_of_closing_here(const std::string& peer);
Error error_of_closing_late(const std::string& peer);
/// The error of the exception being handled, which reading or a receiver has thrown.
Error error_of_current_exception(const std::string& peer);

/// Thread-safe: whoever ends a connection notes the cause, and the earliest one stays.
class ConnectionEnd {
 public:
  explicit ConnectionEnd(std::string peer) : peer_(std::move(peer)) {}

  void note(const Error& error);
  bool noted() const;

  /// The error that was noted, or that the peer has gone; `position`: the place in a message, or
  /// empty.
  Error reason(const std::string& position) const;

 private:
  const std::string peer_;
  mutable std::mutex mutex_;
  std::optional<Error> cause_;
};

}  // namespace paceline
