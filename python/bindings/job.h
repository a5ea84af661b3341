// A Python process as a task of a job.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/program.h"
#include "paceline/run_options.h"

namespace paceline::python {

/// Throws what a Python signal handler raises, on the main thread; on others it does nothing. The
/// caller does not hold the GIL.
void check_signals();

/// A ProgramTask whose beginning Ctrl-C can end: a thread of its own waits for the other processes
/// of the job, or serves where this one is a parameter server. All functions are called without the
/// GIL.
class Job {
 public:
  /// Waits until this process is to train, or has nothing to train any more. `words` are the
  /// program's name and its flags. Throws what ProgramTask throws, and what check_signals throws: a
  /// signal ends a parameter server in good order.
  explicit Job(const std::vector<std::string>& words);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// False: the process is to end with status().
  bool trains() const { return !task_->status(); }
  int status() const { return task_->status().value_or(0); }
  const Cluster& cluster() const { return task_->cluster(); }
  const RunOptions& run() const { return task_->run(); }
  /// Says that training has ended, well or with what the program threw, which reports show.
  void end(const std::exception_ptr& error);

 private:
  bool has_begun(double seconds);
  void leave_signals_to_it();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false;        // the thread is done; the rest is the thread's before
  std::exception_ptr error_;  // of the task's beginning
  std::unique_ptr<ProgramTask> task_;
  std::thread thread_;
};

}  // namespace paceline::python
