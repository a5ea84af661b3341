// Why a connection ends, and the error that its receiver gets.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "paceline/error.h"

namespace paceline {

/// Says that connecting to the address took longer than the deadline allows.
Error error_of_slow_dialling(const std::string& address);
/// Says that the listener accepts connections and does not answer.
Error error_of_silence(const std::string& address);
/// Says that this side has closed the connection normally.
Error error_of_closing_here(const std::string& peer);
/// Says that this side has closed the connection before the peer had taken all queued frames.
Error error_of_closing_late(const std::string& peer);
/// Call it in a catch block. Returns an error that names the peer and says what was caught, whether
/// reading or a receiver has thrown it.
Error error_of_current_exception(const std::string& peer);

/// Keeps the cause of a connection's end: the first error that was noted. Thread-safe.
class ConnectionEnd {
 public:
  explicit ConnectionEnd(std::string peer) : peer_(std::move(peer)) {}

  void note(const Error& error);

  /// Returns the noted error. If there is none, returns an error that says that the peer has closed
  /// or died. `position` says where in a message the connection ended, and may be empty.
  Error reason(const std::string& position) const;

 private:
  const std::string peer_;
  mutable std::mutex mutex_;
  std::optional<Error> cause_;
};

}  // namespace paceline
