// Errors: what failed, in words that name the op, the task, the flag or the file.
#pragma once

#include <stdexcept>
#include <string>

namespace paceline {

/// The kinds of failure. A program can act on the kind; the message is for its user.
enum class ErrorCode {
  kInvalidArgument,  // impossible shapes, values or specs
  kUsage,            // a flag on the command line is wrong; the process exits 2
  kNotFound,         // a file, a variable, an op or a host does not exist
  kUnavailable,      // a peer died, or closed or refused a link; or memory is short
  /// A ps was lost with its values: a new session goes on from the newest checkpoint (run_program
  /// makes that session by itself).
  kAborted,
  kDeadlineExceeded,    // a wait took longer than it may
  kCancelled,           // interrupted by the user; the process exits 130
  kDataLoss,            // bytes that are torn, truncated or not what they claim to be
  kFailedPrecondition,  // a call in the wrong order or state
  kInternal,            // a bug in Paceline
};

/// The exception of the library. Code throws an Error where it finds a fault; threads and tasks
/// catch the Error at their outermost level.
class Error : public std::runtime_error {
 public:
  /// `message` is what the user reads.
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// The kind of failure.
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace paceline
