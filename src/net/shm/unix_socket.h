// Unix sockets with abstract names, which only tasks in the same network namespace can reach, and
// messages over them that carry a descriptor.
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

/// Non-blocking. Throws kUnavailable.
FileDescriptor listen_at_abstract(const std::string& name);
/// None: nobody listens there, in this namespace. Throws kDeadlineExceeded, kUnavailable.
std::optional<FileDescriptor> dial_abstract(const std::string& name, Deadline deadline);
/// "a task of this host (pid 12)".
std::string text_of_unix_peer(int socket);

/// Sends a whole message, and a descriptor unless it is negative. False when that did not work at
/// once.
bool send_message(int socket, std::string_view text, int passed);

struct UnixMessage {
  enum class Outcome { kMessage, kNothing, kClosed, kGarbage };
  Outcome outcome = Outcome::kNothing;
  std::string text;
  FileDescriptor passed;  // none, or one
};
/// Returns what has arrived, without waiting. Garbage: longer than `most_bytes`, or several
/// descriptors.
UnixMessage receive_message(int socket, std::size_t most_bytes);

}  // namespace paceline
