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

/// Throws what a Python signal handler raises. Only the main thread runs handlers; on other threads
/// nothing happens. The caller must not hold the GIL.
void check_signals();

/// A ProgramTask that Ctrl-C can end at its beginning: a separate thread waits for the job's other
/// processes, or serves if this process is a parameter server. Call all functions without the GIL.
class Job {
 public:
  /// Waits until this process shall train, or has nothing left to train. `words` are the program's
  /// name and its flags. Throws what ProgramTask throws, and what check_signals throws: a signal
  /// makes a parameter server end in an orderly way.
  explicit Job(const std::vector<std::string>& words);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// False if the process must end, with status().
  bool trains() const { return !task_->status(); }
  int status() const { return task_->status().value_or(0); }
  const Cluster& cluster() const { return task_->cluster(); }
  const RunOptions& run() const { return task_->run(); }
  /// Tells the job that training has ended: well, or with the error that the program threw, which
  /// reports then show.
  void end(const std::exception_ptr& error);

 private:
  bool has_begun(double seconds);
  void leave_signals_to_it();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false;        // true once the thread is done; until then the thread owns the rest
  std::exception_ptr error_;  // of the task's beginning
  std::unique_ptr<ProgramTask> task_;
  std::thread thread_;
};

}  // namespace paceline::python
