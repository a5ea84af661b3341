// Tests synchronous rounds with real tasks: threads over inproc links.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "params/strategy/strategy_kind.h"
#include "params/testing/fast_clock.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

/// A dense variable of several chunks, a sparse variable, and a dense variable of one chunk.
std::vector<VariableSpec> variables_of_all_kinds() {
  return {{.name = "large", .shape = {600, 600}, .rule = Momentum{}},
          {.name = "rows", .shape = {20, 3}, .sparse = true},
          {.name = "small", .shape = {5, 4}, .rule = Adam{}}};
}

/// One worker's part of a step that several workers make together. It contributes the numbers that
/// numbers() gives.
class PartDriver {
 public:
  /// With `reread` each variable counts as read by several kernels of a step.
  PartDriver(ParameterStore& store, float clip_norm, bool reread = false)
      : store_(store), steps_(store.bind(binding(store.variables(), reread), clip_norm)) {
    for (const VariableSpec& variable : store.variables()) {
      learning_rates_.push_back(variable.rule.learning_rate());
    }
  }
  static PlanBinding binding(std::span<const VariableSpec> variables, bool reread) {
    PlanBinding plan;
    for (std::size_t v = 0; v < variables.size(); ++v) {
      plan.uses.push_back({.variable = VariableId(v),
                           .updated = true,
                           .most_rows = variables[v].sparse ? variables[v].shape[0] : 0,
                           .reread = reread});
    }
    return plan;
  }

  /// Returns what part `part` contributes to an element in the step. Rows for which has_row() is
  /// false are left out.
  static float numbers(std::int64_t step, int part, VariableId variable, std::int64_t element) {
    return 0.01f * float((step * 7 + part * 5 + variable * 3 + element) % 11 - 5);
  }
  static bool has_row(std::int64_t step, int part, std::int64_t row) {
    return (step + row + part) % 3 != 0;
  }

  /// Contributes the mean of these parts, which counts as `examples` examples. Returns the global
  /// step.
  std::int64_t step(std::span<const int> parts, std::int64_t examples) {
    begin(parts, examples);
    return end();
  }
  void begin(std::span<const int> parts, std::int64_t examples) {
    const std::vector<std::int32_t> rows = rows_of(parts);
    std::vector<RowSet> sets;
    for (std::size_t v = 0; v < store_.variables().size(); ++v) {
      if (store_.variables()[v].sparse) sets.push_back({.variable = VariableId(v), .ids = rows});
    }
    steps_->begin_step(StepKind::kTrain, sets,
                       {.learning_rates = learning_rates_, .examples = examples, .step = step_});
    for (std::size_t v = 0; v < store_.variables().size(); ++v) {
      steps_->need(VariableId(v));
      contribute(VariableId(v), parts, rows);
    }
  }
  std::int64_t end() {
    ++step_;
    return steps_->end_step(1, {}).global_step();
  }

 private:
  std::vector<std::int32_t> rows_of(std::span<const int> parts) const {
    std::vector<std::int32_t> rows;
    for (std::int32_t row = 0; row < 20; ++row) {
      const auto has = [&](int part) { return has_row(step_, part, row); };
      if (std::ranges::any_of(parts, has)) rows.push_back(row);
    }
    return rows;
  }
  void contribute(VariableId variable, std::span<const int> parts,
                  const std::vector<std::int32_t>& rows) {
    const VariableSpec& spec = store_.variables()[std::size_t(variable)];
    const std::int64_t row = spec.shape.elements() / spec.shape[0];
    const std::int64_t count = spec.sparse ? std::int64_t(rows.size()) : spec.shape[0];
    float* const to = steps_->place(variable).view.as<float>();
    for (std::int64_t i = 0; i < count * row; ++i) {
      const std::int64_t at = spec.sparse ? rows[std::size_t(i / row)] : i / row;
      to[i] = 0;
      for (const int part : parts) {
        if (spec.sparse && !has_row(step_, part, at)) continue;
        to[i] += numbers(step_, part, variable, at * row + i % row) / float(parts.size());
      }
    }
    steps_->ready(variable, {.sparse = spec.sparse, .ids = rows}, {});
  }

  ParameterStore& store_;
  std::unique_ptr<StoreSteps> steps_;
  std::vector<float> learning_rates_;
  std::int64_t step_ = 0;
};

class SyncJob : public JobFixture {
 protected:
  PsStoreOptions options(int worker) {
    PsStoreOptions options = store_options(worker);
    options.aggregation = rounds_of(spec_, replicas_, late_);
    options.share_memory = share_memory_;
    if (prepare_) prepare_(options);
    return options;
  }
  void start(int num_ps, int num_workers, const std::vector<VariableSpec>& variables) {
    make_spec(num_ps, num_workers);
    start_all_ps();
    std::vector<std::future<std::unique_ptr<PsStore>>> joining;
    joining.reserve(std::size_t(num_workers));
    for (int i = 0; i < num_workers; ++i) {
      joining.push_back(std::async(std::launch::async, [this, i, &variables] {
        return PsStore::join(options(i), variables);
      }));
    }
    for (auto& store : joining) stores_.push_back(store.get());
    stores_[0]->write(initial_states(variables), 0);
    for (auto& store : stores_) store->wait_initialised();
  }
  void leave_all() {
    for (auto& store : stores_) {
      if (store) store->set_done();
    }
    for (auto& store : stores_) {
      if (store) store->goodbye();
    }
  }
  /// Ends the whole job, so that another one may begin at the same addresses.
  void end_job() {
    leave_all();
    for (auto& ps : ps_tasks_) ps.get();
    ps_tasks_.clear();
    stores_.clear();
    spec_ = {};
  }
  /// Calls the steps of every worker, each in a thread of its own.
  template <typename Steps>
  void in_threads(Steps&& steps) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      threads.emplace_back([&, i] { steps(int(i), *stores_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  int replicas_ = 0;
  LateContribution late_ = LateContribution::kDrop;
  bool share_memory_ = true;
  std::function<void(PsStoreOptions&)> prepare_;
  std::vector<std::unique_ptr<PsStore>> stores_;
};

/// The number of ps tasks and of workers, whether they share memory, and the norm to clip by, or 0.
struct JobShape {
  int num_ps, num_workers;
  bool shared;
  float clip_norm;
};

class SyncEquality : public SyncJob, public ::testing::WithParamInterface<JobShape> {};

INSTANTIATE_TEST_SUITE_P(Jobs, SyncEquality,
                         ::testing::Values(JobShape{1, 2, true, 0}, JobShape{1, 3, false, 0},
                                           JobShape{2, 2, true, 0}, JobShape{3, 4, false, 0},
                                           JobShape{1, 2, true, 0.05f},
                                           JobShape{3, 3, false, 0.05f}),
                         [](const auto& info) {
                           const JobShape& it = info.param;
                           return fmt::format("{}ps_{}workers{}{}", it.num_ps, it.num_workers,
                                              it.shared ? "_shared" : "",
                                              it.clip_norm > 0 ? "_clipped" : "");
                         });

// The norm of the mean must equal the norm by which one process clips if it makes all parts by
// itself.
TEST_P(SyncEquality, WorkersOnTheirPartsTrainAsOneOnTheWhole) {
  constexpr int kRounds = 10;
  const JobShape& how = GetParam();
  share_memory_ = how.shared;
  start(how.num_ps, how.num_workers, variables_of_all_kinds());
  in_threads([&](int worker, PsStore& store) {
    PartDriver driver(store, how.clip_norm);
    for (std::int64_t round = 0; round < kRounds; ++round) {
      ASSERT_EQ(driver.step({{worker}}, 4), round + 1);
    }
    EXPECT_EQ(store.staleness().mean(), 0);
  });
  const auto together = everything(*stores_[0]);
  leave_all();

  spec_ = {.ps = {"alone:1"}, .workers = {"worker:1"}};
  replicas_ = 0;
  start_all_ps();
  const auto alone = PsStore::join(options(0), variables_of_all_kinds());
  alone->write(initial_states(variables_of_all_kinds()), 0);
  PartDriver driver(*alone, how.clip_norm);
  std::vector<int> all(std::size_t(how.num_workers));
  for (int i = 0; i < how.num_workers; ++i) all[std::size_t(i)] = i;
  for (int round = 0; round < kRounds; ++round) driver.step(all, 4 * how.num_workers);
  const auto whole = everything(*alone);
  alone->set_done();
  alone->goodbye();

  ASSERT_EQ(together.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    ASSERT_EQ(together[i].size(), whole[i].size());
    for (std::size_t j = 0; j < whole[i].size(); ++j) {
      ASSERT_NEAR(together[i][j], whole[i][j], 2e-6) << "array " << i << " element " << j;
    }
  }
}

TEST_F(SyncJob, EveryRunGivesTheSameBits) {
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 2; ++run) {
    start(2, 3, variables_of_all_kinds());
    in_threads([&](int worker, PsStore& store) {
      PartDriver driver(store, 0);
      for (int round = 0; round < 8; ++round) driver.step({{worker}}, 1 + worker);
    });
    const auto bits = everything(*stores_[0]);
    end_job();
    if (run == 0) first = bits;
    EXPECT_EQ(bits, first);
  }
}

// If late contributions count, values may change during a step, but the kernels of the step must
// see one value. So each worker reads a copy of its own, which the ps renews with each answer.
TEST_F(SyncJob, CopiesOfWorkersHaveTheValuesOfTheRound) {
  std::vector<std::vector<float>> in_place;
  for (const LateContribution late : kLateContributions) {
    late_ = late;
    start(2, 2, variables_of_all_kinds());
    in_threads([&](int worker, PsStore& store) {
      const auto steps = store.bind(PartDriver::binding(store.variables(), true), 0);
      PartDriver driver(store, 0, true);
      for (int round = 0; round < 6; ++round) driver.step({{worker}}, 1);
      steps->begin_step(StepKind::kFetch, {}, {});
      const TensorView value = steps->need(2).view;
      const auto written = everything(store)[3];
      const std::span read(value.as<float>(), written.size());
      EXPECT_TRUE(std::ranges::equal(read, written));
      steps->end_step(1, {});
    });
    const auto bits = everything(*stores_[0]);
    end_job();
    if (late == LateContribution::kDrop) in_place = bits;
    EXPECT_EQ(bits, in_place);
  }
}

std::vector<VariableSpec> one_variable() { return {{.name = "w", .shape = {64, 8}}}; }

// The variable's rule is gradient descent, so the value tells which contributions it includes.
TEST_F(SyncJob, ContributionsCountAsTheirExamples) {
  start(1, 2, one_variable());
  const float before = everything(*stores_[0])[0][5];
  in_threads([&](int worker, PsStore& store) {
    PartDriver(store, 0).step({{worker}}, worker == 0 ? 1 : 3);
  });
  const float mean =
      0.25f * PartDriver::numbers(0, 0, 0, 5) + 0.75f * PartDriver::numbers(0, 1, 0, 5);
  EXPECT_NEAR(everything(*stores_[0])[0][5], before - Sgd{}.learning_rate * mean, 1e-7);
  leave_all();
}

TEST_F(SyncJob, ALateContributionIsDroppedAndCounted) {
  replicas_ = 1;
  start(2, 2, one_variable());
  PartDriver fast(*stores_[0], 0), slow(*stores_[1], 0);
  slow.begin({{1}}, 1);
  EXPECT_EQ(fast.step({{0}}, 1), 1);
  const auto before = everything(*stores_[0]);
  EXPECT_EQ(slow.end(), 1) << "no round has counted it";
  EXPECT_EQ(everything(*stores_[0]), before);
  EXPECT_EQ(stores_[1]->staleness().dropped, 1);
  EXPECT_EQ(slow.step({{1}}, 1), 2) << "the next one is in time";
  EXPECT_EQ(stores_[1]->staleness().dropped, 1);
  leave_all();
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().late, 1);
}

TEST_F(SyncJob, ALateContributionIsFoldedIntoTheOpenRound) {
  replicas_ = 1;
  late_ = LateContribution::kFold;
  start(2, 2, one_variable());
  PartDriver fast(*stores_[0], 0), slow(*stores_[1], 0);
  slow.step({{1}}, 1);
  fast.step({{0}}, 1);
  slow.begin({{1}}, 1);
  EXPECT_EQ(fast.step({{0}}, 1), 2);
  EXPECT_EQ(slow.end(), 3);
  EXPECT_EQ(stores_[1]->staleness().dropped, 0);
  EXPECT_EQ(stores_[1]->staleness().updates, 1) << "it was made of values that were one round old";
  leave_all();
}

TEST_F(SyncJob, RoundsGoOnWithoutAWorkerThatIsLost) {
  start(2, 2, one_variable());
  std::thread other([&] { PartDriver(*stores_[1], 0).step({{1}}, 1); });
  PartDriver driver(*stores_[0], 0);
  EXPECT_EQ(driver.step({{0}}, 1), 1);
  other.join();
  stores_[1].reset();  // without a goodbye
  EXPECT_EQ(driver.step({{0}}, 1), 2);
  EXPECT_EQ(driver.step({{0}}, 1), 3);
  EXPECT_TRUE(wait_said("rounds go on without worker:1: 1 worker"));
  leave_all();
}

TEST_F(SyncJob, RoundsGoOnWithoutAWorkerWhoseDataHasEnded) {
  start(1, 3, one_variable());
  in_threads([&](int worker, PsStore& store) {
    PartDriver driver(store, 0);
    for (int round = 0; round < 3 + 2 * worker; ++round) driver.step({{worker}}, 1);
    store.set_done();
  });
  EXPECT_EQ(stores_[2]->global_step(), 7);
  EXPECT_TRUE(wait_said("rounds go on without worker:0: 2 workers"));
  EXPECT_TRUE(wait_said("rounds go on without worker:1: 1 worker"));
  leave_all();
}

TEST_F(SyncJob, AWorkerThatComesLateTakesPartFromThenOn) {
  make_spec(2, 2);
  for (int ps = 0; ps < 2; ++ps) {
    PsOptions options = ps_options(ps);
    options.join_timeout = 300ms;
    ps_tasks_.push_back(start_ps(options));
  }
  stores_.resize(2);
  stores_[0] = PsStore::join(options(0), one_variable());
  stores_[0]->write(initial_states(one_variable()), 0);
  PartDriver early(*stores_[0], 0);
  EXPECT_EQ(early.step({{0}}, 1), 1);
  EXPECT_TRUE(wait_said("rounds begin without worker:1, which has not come"));
  stores_[1] = PsStore::join(options(1), one_variable());
  stores_[1]->wait_initialised();
  EXPECT_TRUE(wait_said("worker:1 takes part in rounds from 1 on: 2 workers"));
  std::atomic<bool> has_left = false;
  std::thread late([&] {
    PartDriver driver(*stores_[1], 0);
    const std::int64_t joined_at = driver.step({{1}}, 1);
    EXPECT_EQ(stores_[1]->staleness().dropped, 1) << "what it has read may be of two rounds";
    EXPECT_EQ(driver.step({{1}}, 1), joined_at + 1) << "it begins together with the other";
    stores_[1]->set_done();
    has_left = true;
  });
  std::int64_t rounds = 1;
  while (!has_left) EXPECT_EQ(early.step({{0}}, 1), ++rounds);
  late.join();
  leave_all();
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, rounds + 1);
}

// The worker waits ten seconds of the clock before it says that it waits.
TEST_F(SyncJob, AWorkerThatWaitsLongSaysForWhichRoundAndCountsItAsWait) {
  FastClock clock;
  StepAccount account(clock);
  prepare_ = [&](PsStoreOptions& options) {
    if (options.task.index != 0) return;
    options.clock = &clock;
    options.join_timeout = 24h;
    options.account = &account;
  };
  start(1, 2, one_variable());
  PartDriver slow(*stores_[1], 0);
  std::thread fast([&] { PartDriver(*stores_[0], 0).step({{0}}, 1); });
  EXPECT_TRUE(wait_said("waits for round 0 to be closed"));
  slow.step({{1}}, 1);
  fast.join();
  EXPECT_GE(account.spent(Activity::kWait), 10s);
  leave_all();
  stores_.clear();  // before the clock ends
}

}  // namespace
}  // namespace paceline
