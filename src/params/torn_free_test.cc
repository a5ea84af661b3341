// With --torn-free, values that a worker reads where a ps updates them are copied, each chunk of
// one moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "params/shard/chunk_versions.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

constexpr std::int64_t kElements = 700'000, kChunk = kVersionedBytes / sizeof(float);
constexpr int kWriterSteps = 30;

const std::vector<VariableSpec>& torn_variables() {
  static const std::vector<VariableSpec> specs = {
      {.name = "w", .shape = {kElements}, .rule = Add{}},
      {.name = "rows", .shape = {50, 4}, .rule = Add{}, .sparse = true}};
  return specs;
}

// The parameter is how often the reader tries before it asks the ps; 0: it always asks.
class TornFree : public JobFixture, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    make_spec(1, 3);
    start_all_ps();
    std::vector<std::future<std::unique_ptr<PsStore>>> joining;
    joining.reserve(3);
    for (int worker = 0; worker < 3; ++worker) {
      joining.push_back(std::async(std::launch::async, [this, worker] {
        PsStoreOptions options = store_options(worker);
        options.torn_free = worker == 0;
        options.torn_free_tries = GetParam();
        return PsStore::join(options, torn_variables());
      }));
    }
    for (auto& store : joining) stores_.push_back(store.get());
    std::vector<VariableState> zeros;
    for (int v = 0; v < 2; ++v) {
      const Tensor zero(DType::kFloat32, torn_variables()[std::size_t(v)].shape);
      zeros.push_back({.variable = v, .value = zero, .slots = {}});
    }
    stores_[0]->write(zeros, 0);
  }
  // Adds one to every element of w, in each of its steps.
  void write(int worker) {
    PsStore& store = *stores_[std::size_t(worker)];
    store.wait_initialised();
    const auto steps = store.bind({.uses = {{.variable = 0, .updated = true}}}, 0);
    for (int i = 0; i < kWriterSteps; ++i) {
      steps->begin_step(StepKind::kTrain, {}, {.learning_rates = rates_});
      const TensorView place = steps->place(0).view;
      std::fill_n(place.as<float>(), kElements, 1.0f);
      steps->ready(0, {}, {});
      steps->end_step(1, {}).global_step();
    }
  }
  // Makes a step of the reader. Returns the smaller one of the first and the last element it sees.
  float look(StoreSteps& looker) {
    const std::vector<std::int32_t> ids = {3, 49};
    const RowSet rows{1, ids};
    looker.begin_step(StepKind::kTrain, {&rows, 1}, {.learning_rates = rates_});
    const float* const values = looker.need(0).view.as<float>();
    EXPECT_EQ(looker.need(1).view.as<float>()[3 * 4], 0.0f);
    for (std::int64_t begin = 0; begin < kElements; begin += kChunk) {
      const std::int64_t end = std::min(begin + kChunk, kElements);
      EXPECT_EQ(std::count(values + begin, values + end, values[begin]), end - begin);
    }
    looker.end_step(1, {}).global_step();
    return std::min(values[0], values[kElements - 1]);
  }

  std::vector<std::unique_ptr<PsStore>> stores_;
  const std::vector<float> rates_ = std::vector<float>(2, 0.0f);
};

// Two write all elements alike, again and again; one looks: every chunk of what it sees is equal.
TEST_P(TornFree, ChunksAreOfOneMomentAmongWritersThatNeverPause) {
  std::vector<std::future<void>> writers;
  for (const int worker : {1, 2}) {
    writers.push_back(std::async(std::launch::async, [this, worker] { write(worker); }));
  }
  const auto looker = stores_[0]->bind({.uses = {{.variable = 0}, {.variable = 1}}}, 0);
  while (look(*looker) < 2 * kWriterSteps && !HasFailure()) {
  }
  for (auto& writer : writers) writer.get();
  for (const auto& store : stores_) store->goodbye();
}

INSTANTIATE_TEST_SUITE_P(Tries, TornFree, ::testing::Values(0, 1, 16));

using TornFreeJob = JobFixture;

TEST_F(TornFreeJob, AReaderThatFindsNoPauseAsksThePs) {
  const std::vector<VariableSpec> dense = {{.name = "w", .shape = {10'000}, .rule = Add{}}};
  make_spec(1, 2);
  start_all_ps();
  for (const int tries : {16, 0}) {
    PsStoreOptions options = store_options(tries == 0 ? 1 : 0);
    options.torn_free = true;
    options.torn_free_tries = tries;
    const auto store = PsStore::join(options, dense);
    if (tries > 0) store->write(initial_states(dense), 0);
    store->wait_initialised();
    StepDriver driver(*store, false);
    const std::int64_t before = store->account().bytes_received;
    driver.step();
    EXPECT_EQ(store->account().bytes_received - before > 40'000, tries == 0);
    store->goodbye();
  }
}

}  // namespace
}  // namespace paceline
