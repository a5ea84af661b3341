// Makes a Python process a task of a job.
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

/// A ProgramTask whose constructor Ctrl-C can interrupt: a separate thread waits for the job's
/// other processes, or serves if this process is a parameter server. Call the constructor, end()
/// and the destructor without the GIL.
class Job {
 public:
  /// Waits until this process can train, or has nothing to train. `words` are the program's name
  /// and its flags. Throws what ProgramTask throws, and what check_signals throws; before that, a
  /// parameter server is ended in an orderly way.
  explicit Job(const std::vector<std::string>& words);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// False if the process must end, with status().
  bool trains() const { return !task_->status(); }
  int status() const { return task_->status().value_or(0); }
  const Cluster& cluster() const { return task_->cluster(); }
  const RunOptions& run() const { return task_->run(); }
  /// Tells the job that training has ended. If `error` is not null, it is the error that the
  /// program threw, and the report shows it.
  void end(const std::exception_ptr& error);

 private:
  bool has_begun(double seconds);
  void leave_signals_to_it();

  std::mutex mutex_;
  std::condition_variable changed_;
  /// True once the thread is done; until then the thread owns error_ and task_.
  bool begun_ = false;
  std::exception_ptr error_;  // the error of ProgramTask's constructor
  std::unique_ptr<ProgramTask> task_;
  std::thread thread_;
};

}  // namespace paceline::python
