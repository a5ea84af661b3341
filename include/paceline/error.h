// Errors: what failed, in words that name the op, the task, the flag or the file.
#pragma once

#include <stdexcept>
#include <string>

namespace paceline {

/// Kinds of failure; a program may act by them, its user reads the message.
enum class ErrorCode {
  kInvalidArgument,     // what was asked for cannot be: shapes, values, specs
  kUsage,               // a flag on the command line is wrong; the process exits 2
  kNotFound,            // a file, a variable, an op or a host that is not there
  kUnavailable,         // a peer died, closed its link or refused it
  kDeadlineExceeded,    // a wait took longer than it may
  kCancelled,           // interrupted by the user; the process exits 130
  kDataLoss,            // bytes that are torn, truncated or not what they claim to be
  kFailedPrecondition,  // a call in the wrong order or state
  kInternal,            // a bug of ours
};

/// Thrown where a fault is found, caught at the edge of a thread or a task.
class Error : public std::runtime_error {
 public:
  /// `message` is what the user reads.
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// What kind of failure it is.
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace paceline
