// For tests: ps tasks as threads of this process, workers' stores, and steps on them.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net/inproc/inproc_hub.h"
#include "params/ps/serve.h"
#include "params/worker/ps_store.h"

namespace paceline {

/// Tasks over the inproc links of one hub.
class JobFixture : public ::testing::Test {
 protected:
  void make_spec(int num_ps, int num_workers);
  PsOptions ps_options(int ps);
  PsStoreOptions store_options(int worker);
  /// Serves as a ps, in a thread. The future gets the ps's summary, or its error.
  std::future<PsSummary> start_ps(const PsOptions& options);
  void start_all_ps();
  void stop_all_ps();
  /// Joins all workers, each in a thread of its own, and waits for them.
  std::vector<std::unique_ptr<PsStore>> join_all(const std::vector<VariableSpec>& variables);
  /// Returns what all tasks have said to the user, one line each.
  std::string said();
  /// Waits until a line for the user contains `text`. Returns false if none does within a minute.
  bool wait_said(const std::string& text);
  void say(const std::string& line);
  std::function<std::unique_ptr<Link>(const LinkOptions&)> link_factory();
  JobFixture();
  ~JobFixture() override;  // stops the ps tasks that still serve

  ClusterSpec spec_;
  std::vector<std::future<PsSummary>> ps_tasks_;
  AfterReads after_reads_;                                 // of each ps that starts from now on
  ManualClock clock_;                                      // for tasks whose options name it
  Duration reconnect_timeout_ = std::chrono::seconds(30);  // of tasks that start from now on

 private:
  const std::shared_ptr<InprocHub> hub_;
  int stop_fd_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string said_;
};

/// Values between −1 and 1 that are the same in every run, and differ between the elements of a
/// variable.
VariableState initial_state(const VariableSpec& spec, VariableId variable);
std::vector<VariableState> initial_states(std::span<const VariableSpec> variables);

/// Reads each trained variable, and contributes to it a function of its value and of the step. So a
/// value that is late or torn changes all later values.
class StepDriver {
 public:
  /// With `reread` each variable counts as read by several kernels of a step.
  StepDriver(ParameterStore& store, bool clipped, bool reread = false);
  /// Makes a train step; returns the global step.
  std::int64_t step();
  /// Waits until every ps has applied the last step. The step itself already ends when ps 0 has
  /// applied it.
  void wait_applied();
  /// True if a step knows the rows of the next batch, as some plans do.
  bool knows_next_rows = true;

 private:
  std::vector<std::int32_t> rows_of(VariableId variable, std::int64_t step) const;
  std::vector<RowSet> row_sets(std::int64_t step);
  void contribute(VariableId variable);

  ParameterStore& store_;
  const bool clipped_;
  std::unique_ptr<StoreSteps> steps_;
  std::vector<float> learning_rates_;
  std::vector<std::vector<std::int32_t>> rows_, contributed_;  // by variable
  std::int64_t step_ = 0;
  bool rows_come_ = false;
};

/// Returns the numbers of all variables and slots, for EXPECT_EQ.
std::vector<std::vector<float>> everything(ParameterStore& store);

}  // namespace paceline
