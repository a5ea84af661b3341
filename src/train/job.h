// The store that a session trains with, by its cluster: its own memory, or parameter servers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "paceline/session.h"
#include "params/server_store.h"
#include "trace/step_account.h"
#include "trace/timeline.h"

namespace paceline {

class Job {
 public:
  struct Options {
    const Cluster& cluster;
    const RunOptions& run;
    bool spin = false;
    ThreadPool* pool = nullptr;  // applies the rules in one process
    StepAccount* account = nullptr;
    Timeline* timeline = nullptr;
  };
  /// Joins. Throws what ServerStore::join throws; kUsage when the task is a ps.
  Job(const Options& options, std::vector<VariableSpec> variables);
  /// Says goodbye, unless fail was called.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// The chief's part: `make_values` gives what the variables begin with, unless they are
  /// initialised already. Another worker waits until they are.
  void initialise(const std::function<std::vector<VariableState>()>& make_values);
  /// Waits until every worker is done or gone.
  void finish_training();
  /// The session failed: no goodbye, so that the others see that this task was lost.
  void fail() { failed_ = true; }

  ParameterStore& store() { return *store_; }
  /// Null in one process.
  JobControl* control() { return server_; }
  /// Throws kCancelled when the user has interrupted the process.
  void check_interrupt() const;

 private:
  void join(const Options& options, std::vector<VariableSpec> variables);

  Cluster cluster_;
  const Interrupt* interrupt_;
  std::unique_ptr<ParameterStore> store_;
  ServerStore* server_ = nullptr;
  bool failed_ = false;
};

}  // namespace paceline
