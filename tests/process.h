// A child process of a test, whose output can be read while it runs, and which must end by a
// deadline.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/temporary_folder.h"

namespace paceline::testing {

/// Starts a program with stdout and stderr in one pipe. The destructor kills the program if it
/// still runs.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  /// Reads output until it contains `text`; returns false if the deadline passes or the process
  /// ends first.
  bool wait_for(const std::string& text, std::chrono::seconds within);
  /// Waits for a text in the output that the process writes after this call.
  bool wait_for_more(const std::string& text, std::chrono::seconds within);
  /// Waits for a text in the output after the last text that was found: a line that appears only
  /// once may arrive before the test waits for it.
  bool wait_for_next(const std::string& text, std::chrono::seconds within);
  /// Reads output until the process ends. Returns the exit status, 128 + n after signal n, or −1 if
  /// the deadline passes.
  int wait_exit(std::chrono::seconds within);
  const std::string& output() const { return output_; }
  pid_t pid() const { return pid_; }

 private:
  enum class Read { kMore, kEnd, kLate };
  Read read_some(std::chrono::steady_clock::time_point until);
  bool find(const std::string& text, std::size_t from, std::chrono::steady_clock::time_point until);

  pid_t pid_ = -1;
  int output_fd_ = -1;
  std::string output_;
  std::size_t found_ = 0;  // the end of the text that the last wait has found
  bool reaped_ = false;
};

/// The words of a command line.
using Words = std::vector<std::string>;
/// Returns all words of the lists, one list after the other.
Words join(std::initializer_list<Words> lists);

struct Finished {
  int status = 0;
  std::string output;
};

/// Runs `paceline ARGUMENTS…` to its end.
Finished run_paceline(const std::vector<std::string>& arguments,
                      std::chrono::seconds within = std::chrono::seconds(600));
/// Runs `paceline ARGUMENTS…`, which trains with `workers` workers, until each has made ten own
/// steps, no matter how late it began; then interrupts it. The arguments must not limit the steps.
void train_until_all_have_stepped(std::vector<std::string> arguments, int workers);
/// The words of `paceline ARGUMENTS…`, for Process.
std::vector<std::string> paceline_words(const std::vector<std::string>& arguments);

/// Returns the flag for a key in that folder, for each task of a job on several hosts.
Words with_key(const TemporaryFolder& folder);

/// Returns a loopback address with a free port. No other test program gets this port until this one
/// ends.
std::string free_address();
/// Connects to "127.0.0.1:port". Returns the socket, which the caller closes.
int connect_to(const std::string& address);

}  // namespace paceline::testing
