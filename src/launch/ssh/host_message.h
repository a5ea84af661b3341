// The messages between a launcher and its agent on a host, through ssh. Both are of one version, so
// the format may change with any version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct HostMessage {
  enum class Kind : std::uint8_t {
    // To the agent:
    kPrepare,  // texts: those of a HostJob
    // Starts a process with the number `task`; texts: name, program, $PACELINE_TASK, key, then
    // arguments.
    kStart,
    kSignal,    // number: the signal, for the process
    kEndInput,  // of the process
    // To the launcher:
    kReady,    // number: the cores; texts: for each task its port, then its files
    kRefused,  // texts: why
    kOutput,   // number: 1 or 2, the stream; texts: a chunk of output
    kStopped,  // number: 1 if the process is stopped, 0 if it goes on
    kFile,     // number: which file of its task; texts: the file's content
    kEnded,    // number: its exit status; texts: its signal, and why
  };
  Kind kind = Kind::kPrepare;
  std::int32_t task = 0, number = 0;
  std::vector<std::string> texts = {};  // of any bytes
  bool operator==(const HostMessage&) const = default;
};

/// Returns the bytes of a message, cut into chunks that a pipe takes whole. Between two chunks
/// another process may write a pulse, which tells the other side that the sender still runs.
std::vector<std::string> chunks_of(const HostMessage& message);
/// Returns an empty chunk.
std::string pulse();

/// Collects bytes as they arrive, and returns the messages in them.
class HostMessageReader {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// Returns the next whole message; empty if none has arrived. Throws kDataLoss for bytes that are
  /// no message.
  std::optional<HostMessage> next();

 private:
  void join_chunks();

  std::string bytes_;   // in chunks
  std::string joined_;  // messages
};

/// The agent's first work: it changes to a folder, and reserves ports and files for tasks.
struct HostJob {
  std::string folder;
  std::string program;  // that the tasks will run
  std::string bind;     // the address at which ports are reserved: "127.0.0.1"
  int first_port = 0;
  int files = 1;  // for each task
  std::int64_t silence_ms = 0, end_within_ms = 0;
  std::vector<std::string> environment = {};  // "NAME=VALUE"
  std::vector<std::string> tasks = {};        // "worker:1"
  bool operator==(const HostJob&) const = default;
};
HostMessage message_of(const HostJob& job);
/// Throws kDataLoss.
HostJob job_of(const HostMessage& message);

/// Reads a text as a number. Throws kDataLoss.
std::int64_t number_in(const std::string& text);

}  // namespace paceline
