// Runs a command that predicts itself and, when the command asks for them, copies of it at once.
#pragma once

#include <signal.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/child_process.h"
#include "launch/running_task.h"
#include "net/poll/file_descriptor.h"
#include "train/copies_at_once.h"

namespace paceline {

struct PredictedCommandOptions {
  std::vector<std::string> command;
  /// The address of this process for the command, and with "/I" for copy I
  /// (train/copies_at_once.h).
  std::string name;
  /// The value of $PACELINE_PREDICT for the command.
  std::string predict;
  /// Returns the value of $PACELINE_PREDICT for copy `copy` of `copies`; `copy` begins at 1.
  std::function<std::string(int copy, int copies)> predict_of_copy;
  /// The time within which copies that run at once must have told their paces; empty: as many times
  /// as long as the command took to ask for them as there are copies and one, and 30 s at least.
  std::optional<Duration> within;
  /// Gets lines for the user. May be empty.
  std::function<void(const std::string&)> say;
};

/// The command has the descriptors, the environment and the process group of this process. Each
/// copy has a process group of its own. It reads nothing, and what it writes is shown only if it
/// fails. Make one object per process, before any other thread or child is started.
class PredictedCommand {
 public:
  /// Throws kUnavailable.
  explicit PredictedCommand(PredictedCommandOptions options);
  ~PredictedCommand();
  PredictedCommand(const PredictedCommand&) = delete;
  PredictedCommand& operator=(const PredictedCommand&) = delete;

  /// Starts the command, and returns when it and all its copies have ended. Passes on signals that
  /// ask to end; those of a terminal reach the command anyway. Throws kUsage if the command cannot
  /// be run.
  ExitStatus run();

 private:
  struct Copy {
    std::unique_ptr<ChildProcess> process = {};
    FileDescriptor socket = {};  // once it has connected and is ready
    std::optional<StepPace> pace = {};
    // The end of what it has written.
    std::shared_ptr<std::string> written = std::make_shared<std::string>();
  };

  void start_command();
  void wait_for_events();
  void take_signals();
  void take_callers();
  void take_messages();
  void take_message(FileDescriptor& from);
  void take_question(FileDescriptor& from, int copies);
  void take_ready(FileDescriptor& from, int copy);
  void start_copies(int copies);
  Copy started(int copy, int copies) const;
  static void take_pace(Copy& copy);
  void take_exits();
  void judge(std::size_t copy);
  void let_all_go();
  void tell_paces();
  /// Stops all copies, and tells the command the reason.
  void give_up(const std::string& why);
  void answer(const CopiesMessage& message);
  void end_copies(Duration within);
  void end_in_time();
  bool any_copy() const;

  const PredictedCommandOptions options_;
  sigset_t before_ = {};
  FileDescriptor signals_, listener_;
  pid_t command_ = -1;
  std::optional<ExitStatus> ended_;  // of the command
  FileDescriptor asker_;             // the connection on which the command waits for an answer
  std::vector<FileDescriptor> callers_;
  std::vector<Copy> copies_;
  std::optional<CopiesMessage> answer_;  // sent once all copies have ended
  TimePoint begun_{};
  std::optional<TimePoint> until_;  // when copies are stopped or, once they end, signalled
  bool ending_ = false;             // copies are to end
  bool asked_to_end_ = false;       // ending copies got SIGTERM
  bool interrupted_ = false;
};

}  // namespace paceline
