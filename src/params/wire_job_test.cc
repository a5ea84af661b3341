// Tests that --wire and --top-k round values and contributions in frames, and nowhere else.
#include <gtest/gtest.h>

#include <cmath>

#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

struct Wire {
  DType dtype = DType::kFloat32;
  bool error_feedback = false, share_memory = false;
  int kept = 0;
};
constexpr Wire kExact{}, kRounded{.dtype = DType::kBFloat16},
    kFedBack{.dtype = DType::kBFloat16, .error_feedback = true},
    kHalf{.dtype = DType::kFloat16, .error_feedback = true},
    kBytes{.dtype = DType::kUInt8, .error_feedback = true},
    kLargest{.dtype = DType::kBFloat16, .error_feedback = true, .kept = 8};

class WireJob : public JobFixture {
 protected:
  void start(int num_ps) {
    make_spec(num_ps, 6);
    start_all_ps();
  }
  /// Joins the next worker. The first one is the chief, and writes `states`.
  std::unique_ptr<PsStore> join(const Wire& wire, const std::vector<VariableSpec>& variables,
                                const std::vector<VariableState>& states) {
    PsStoreOptions options = store_options(workers_++);
    options.share_memory = wire.share_memory;
    options.wire = {wire.dtype, wire.kept};
    options.error_feedback = wire.error_feedback;
    auto store = PsStore::join(options, variables);
    if (workers_ == 1) store->write(states, 0);
    store->wait_initialised();
    return store;
  }

 private:
  int workers_ = 0;
};

std::vector<VariableSpec> trained_variables() {
  return {{.name = "w", .shape = {601, 503}, .rule = Adam{.learning_rate = 0.01f}},
          {.name = "rows", .shape = {200, 7}, .rule = Sgd{.learning_rate = 0.1f}, .sparse = true}};
}

TEST_F(WireJob, FewerBytesAreOnTheLink) {
  const auto variables = trained_variables();
  start(1);
  std::vector<double> sent, received;
  for (const Wire& wire : {kExact, kRounded, kFedBack, kHalf, kBytes, kLargest}) {
    const auto store = join(wire, variables, initial_states(variables));
    EXPECT_EQ(store->rounds(), wire.dtype != DType::kFloat32);
    const StoreAccount before = store->account();
    StepDriver driver(*store, false);
    for (int step = 0; step < 10; ++step) driver.step();
    sent.push_back(double(store->account().bytes_sent - before.bytes_sent));
    received.push_back(double(store->account().bytes_received - before.bytes_received));
    store->goodbye();
  }
  EXPECT_NEAR(sent[1] / sent[0], 0.5, 0.01);
  // The values of the last step may still be under way.
  EXPECT_NEAR(received[1] / received[0], 0.5, 0.06);
  EXPECT_EQ(sent[2], sent[1]);
  EXPECT_EQ(sent[3], sent[1]);
  EXPECT_NEAR(sent[4] / sent[0], 0.25, 0.01);
  EXPECT_NEAR(received[4] / received[0], 0.5, 0.06);
  EXPECT_NEAR(sent[5] / sent[0], 3 * 8 / 1024.0, 0.01);
  EXPECT_NEAR(received[5] / received[0], 0.5, 0.06);
}

// Each variable has fewer numbers than may travel of a block, so all its numbers travel.
TEST_F(WireJob, TheLargestNumbersOfASmallBlockAreAllOfThem) {
  const std::vector<VariableSpec> variables = {
      {.name = "w", .shape = {11, 9}, .rule = Adam{.learning_rate = 0.01f}},
      {.name = "rows", .shape = {30, 3}, .rule = Sgd{.learning_rate = 0.1f}, .sparse = true}};
  start(1);
  const auto chief = join(kExact, variables, initial_states(variables));
  const auto other = join({.error_feedback = true, .kept = 128}, variables, {});
  std::vector<std::vector<std::vector<float>>> ends;
  for (PsStore* store : {chief.get(), other.get()}) {
    chief->write(initial_states(variables), 0);
    StepDriver driver(*store, true);
    for (int step = 0; step < 5; ++step) driver.step();
    ends.push_back(everything(*store));
  }
  EXPECT_TRUE(other->rounds());
  EXPECT_EQ(ends[0], ends[1]);
}

TEST_F(WireJob, NothingIsRoundedWhereMemoryIsShared) {
  const auto variables = trained_variables();
  start(1);
  Wire shared = kFedBack;
  shared.share_memory = true;
  const auto store = join(shared, variables, initial_states(variables));
  EXPECT_FALSE(store->rounds());
}

class WireTraining : public WireJob,
                     public ::testing::WithParamInterface<std::tuple<int, bool, Wire>> {};

// All cases but kRounded feed each error back into the next contribution. In 20 steps, all cases
// must stay close to float32.
TEST_P(WireTraining, StaysCloseToThatInFloat32) {
  const auto [num_ps, clipped, wire] = GetParam();
  const auto variables = trained_variables();
  start(num_ps);
  const auto chief = join(kExact, variables, initial_states(variables));
  const auto other = join(wire, variables, {});
  std::vector<std::vector<std::vector<float>>> ends;
  for (PsStore* store : {chief.get(), other.get()}) {
    chief->write(initial_states(variables), 0);
    StepDriver driver(*store, clipped);
    for (int step = 0; step < 20; ++step) driver.step();
    ends.push_back(everything(*store));
  }
  ASSERT_EQ(ends[0].size(), ends[1].size());
  for (const std::size_t value : {std::size_t{0}, ends[0].size() - 1}) {
    EXPECT_NE(ends[0][value], ends[1][value]);
    for (std::size_t i = 0; i < ends[0][value].size(); ++i) {
      ASSERT_NEAR(ends[0][value][i], ends[1][value][i], 0.02) << value << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, WireTraining,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Bool(),
                                            ::testing::Values(kRounded, kFedBack, kHalf, kBytes)));

// The numbers are small multiples of 2^-9, whose sums float32 holds exactly, so only the wire
// rounds. bfloat16 cannot hold the sum of 1 and an odd multiple.
float contributed(std::size_t element, int step) {
  return 1.0f + float((element * 7 + std::size_t(step) * 3) % 11) / 512;
}

class ErrorFeedback : public WireJob, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr int kSteps = 60;
  static constexpr std::int64_t kRows = 700, kRow = 3;  // so that several ps have a part of each
  static std::vector<VariableSpec> variables() {
    return {{.name = "dense", .shape = {kRows, kRow}, .rule = Add{}},
            {.name = "rows", .shape = {kRows, kRow}, .rule = Add{}, .sparse = true}};
  }
  static std::vector<VariableState> zeros() {
    std::vector<VariableState> states;
    for (int v = 0; v < 2; ++v) {
      const Tensor zero(DType::kFloat32, {kRows, kRow});
      states.push_back({.variable = v, .value = zero, .slots = {}});
    }
    return states;
  }
  // Contributes to all rows of the first variable, and to a third of the rows of the second: each
  // step takes another third.
  void contribute(StoreSteps& steps, int step) {
    const std::vector<float> rates(2, 1.0f);
    steps.begin_step(StepKind::kTrain, {}, {.learning_rates = rates});
    ids_.clear();
    for (std::int32_t row = step % 3; row < kRows; row += 3) ids_.push_back(row);
    float* const dense = steps.place(0).view.as<float>();
    for (std::size_t i = 0; i < kRows * kRow; ++i) sums_[0][i] += dense[i] = contributed(i, step);
    float* const rows = steps.place(1).view.as<float>();
    for (std::size_t i = 0; i < ids_.size() * kRow; ++i) {
      const std::size_t element = std::size_t(ids_[i / kRow]) * kRow + i % kRow;
      sums_[1][element] += rows[i] = contributed(element, step);
    }
    steps.ready(0, {}, {});
    steps.ready(1, {.sparse = true, .ids = ids_}, {});
    steps.end_step(1, {}).global_step();
  }
  /// The largest difference between what was contributed and what was applied.
  double largest_difference(const Wire& wire) {
    const auto store = join(wire, variables(), zeros());
    sums_.assign(2, std::vector<double>(kRows * kRow, 0));
    {
      const auto steps =
          store->bind({.uses = {{.variable = 0, .updated = true},
                                {.variable = 1, .updated = true, .most_rows = kRows}}},
                      false);
      for (int step = 0; step < kSteps; ++step) contribute(*steps, step);
    }
    const auto applied = everything(*store);
    double largest = 0;
    for (std::size_t v = 0; v < 2; ++v) {
      for (std::size_t i = 0; i < applied[v].size(); ++i) {
        largest = std::max(largest, std::abs(double(applied[v][i]) - sums_[v][i]));
      }
    }
    store->goodbye();
    return largest;
  }

 private:
  std::vector<std::vector<double>> sums_;
  std::vector<std::int32_t> ids_;
};

TEST_P(ErrorFeedback, WhatIsAppliedSumsToTheContributionsToWithinOneRounding) {
  start(GetParam());
  EXPECT_LE(largest_difference(kFedBack), 1.0 / 256)
      << "half of the last place of a number in 1 … 2";
}

TEST_P(ErrorFeedback, HoldsForFloat16) {
  start(GetParam());
  EXPECT_LE(largest_difference(kHalf), 1.0 / 2048);
}

TEST_P(ErrorFeedback, HoldsForBytes) {
  start(GetParam());
  EXPECT_LE(largest_difference(kBytes), 1.0 / 127);
}

TEST_P(ErrorFeedback, WithoutItRoundingsAddUp) {
  start(GetParam());
  EXPECT_GT(largest_difference(kRounded), 4.0 / 256);
}

INSTANTIATE_TEST_SUITE_P(NumPs, ErrorFeedback, ::testing::Values(1, 2));

}  // namespace
}  // namespace paceline
