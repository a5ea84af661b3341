#include "net/connection_end.h"

namespace paceline {

void ConnectionEnd::note(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!cause_) cause_ = error;
}

void ConnectionEnd::note_closed_here() {
  note({ErrorCode::kCancelled, "the connection to " + peer_ + " was closed on this side"});
}

bool ConnectionEnd::noted() const {
  const std::lock_guard lock(mutex_);
  return cause_.has_value();
}

Error ConnectionEnd::verdict(const std::string& position) const {
  const std::lock_guard lock(mutex_);
  if (cause_) return *cause_;
  return {ErrorCode::kUnavailable,
          peer_ + " closed the connection or died" + (position.empty() ? "" : " " + position)};
}

Error ConnectionEnd::not_taken_in_time() const {
  return {ErrorCode::kCancelled,
          "the connection to " + peer_ +
              " was closed on this side; what was queued was not taken in time"};
}

Error ConnectionEnd::of_current_exception() const {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), peer_ + ": " + error.what()};
  } catch (const std::exception& error) {
    return {ErrorCode::kInternal, "the receiver of " + peer_ + " threw: " + error.what()};
  }
}

}  // namespace paceline
