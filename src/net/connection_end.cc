#include "net/connection_end.h"

#include "base/failure_text.h"

namespace paceline {

Error error_of_slow_dialling(const std::string& address) {
  return {ErrorCode::kDeadlineExceeded, "connecting to " + address + " took too long"};
}

Error error_of_silence(const std::string& address) {
  return {ErrorCode::kDeadlineExceeded,
          address + " accepts connections but said nothing: it may not speak Paceline"};
}

Error error_of_closing_here(const std::string& peer) {
  return {ErrorCode::kCancelled, "the connection to " + peer + " was closed on this side"};
}

Error error_of_closing_late(const std::string& peer) {
  return {ErrorCode::kCancelled,
          "the connection to " + peer +
              " was closed on this side; what was queued was not taken in time"};
}

Error error_of_current_exception(const std::string& peer) {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), peer + ": " + error.what()};
  } catch (const std::exception& error) {
    return {ErrorCode::kInternal, "the receiver of " + peer + " threw: " + failure_text(error)};
  }
}

void ConnectionEnd::note(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!cause_) cause_ = error;
}

Error ConnectionEnd::reason(const std::string& position) const {
  const std::lock_guard lock(mutex_);
  if (cause_) return *cause_;
  return {ErrorCode::kUnavailable,
          peer_ + " closed the connection or died" + (position.empty() ? "" : " " + position)};
}

}  // namespace paceline
