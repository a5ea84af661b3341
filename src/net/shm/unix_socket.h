// Unix sockets with abstract names, which only tasks in the same network namespace can reach, and
// messages over them that carry a descriptor.
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

/// Listens at a name with a non-blocking socket. Throws kUnavailable.
FileDescriptor listen_at_abstract(const std::string& name);
/// Connects to a name. Returns nullopt if nobody listens at that name in this namespace. Throws
/// kDeadlineExceeded and kUnavailable.
std::optional<FileDescriptor> dial_abstract(const std::string& name, Deadline deadline);
/// True if the system says that the process at the other end runs for this process's user.
bool is_of_this_user(int socket);
/// Returns a text such as "a task of this host (pid 12)".
std::string text_of_unix_peer(int socket);

/// Sends a whole message, together with the descriptor `passed` unless that is negative. Returns
/// false if the socket did not take the message at once.
bool send_message(int socket, std::string_view text, int passed);

struct UnixMessage {
  enum class Outcome { kMessage, kNothing, kClosed, kGarbage };
  Outcome outcome = Outcome::kNothing;
  std::string text;
  FileDescriptor passed;  // empty if none was passed
};
/// Returns what has arrived, without waiting. A message is garbage if it is longer than
/// `most_bytes`, or brings several descriptors.
UnixMessage receive_message(int socket, std::size_t most_bytes);

}  // namespace paceline
