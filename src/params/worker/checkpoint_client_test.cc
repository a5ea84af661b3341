// Tests that a checkpoint of parameter servers holds the values of one moment, whichever task
// writes its shards.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "checkpoint/safetensors_file.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

const std::vector<VariableSpec> kVariables = {
    {.name = "w", .shape = {601, 503}, .rule = Adam{.learning_rate = 0.01f}},
    {.name = "embedding", .shape = {90, 7}, .rule = Sgd{}, .sparse = true},
    {.name = "frozen", .shape = {5}, .trained = false}};

class CheckpointClientTest : public JobFixture {
 protected:
  CheckpointClientTest() {
    if (mkdtemp(folder_.data()) == nullptr) ADD_FAILURE() << folder_;
  }
  ~CheckpointClientTest() override { std::filesystem::remove_all(folder_); }

  /// Returns every value and slot in the shards, in the order of everything().
  std::vector<std::vector<float>> saved(const SavedShards& shards) const {
    std::vector<std::vector<float>> all;
    for (const SavedVariable& variable : shards.variables) {
      for (std::size_t array = 0; array < variable.arrays(); ++array) {
        std::vector<float>& floats = all.emplace_back();
        for (const SavedPiece& piece : variable.pieces) {
          const SafetensorsFile file(folder_ + "/" + piece.file);
          const Tensor tensor = file.read(file.tensor(piece_tensor(variable, piece, array).name));
          if (tensor.dtype() == DType::kInt64) {
            floats.assign(1, float(tensor.item<std::int64_t>()));
          } else {
            floats.insert(floats.end(), tensor.data<float>().begin(), tensor.data<float>().end());
          }
        }
      }
    }
    return all;
  }
  std::string folder_ = ::testing::TempDir() + "served_saving_XXXXXX";
};

TEST_F(CheckpointClientTest, IsOfTheStepAtWhichItWasMarkedWithSharedFilesAndWithout) {
  make_spec(2, 1);
  for (const int ps : {0, 1}) {
    PsOptions options = ps_options(ps);
    options.sees_files = ps == 0;
    ps_tasks_.push_back(start_ps(options));
  }
  const auto store = PsStore::join(store_options(0), kVariables);
  store->write(initial_states(kVariables), 0);
  StepDriver driver(*store, false);
  for (int step = 0; step < 5; ++step) driver.step();
  const std::vector<std::string> lines = store->prepare_saving(folder_);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("ps:1"));
  EXPECT_THAT(lines[0], HasSubstr("does not see " + folder_));
  for (int save = 0; save < 3; ++save) {
    const auto before = everything(*store);
    store->mark();
    for (int step = 0; step < 4; ++step) driver.step();
    const SavedShards shards = store->write_shards(folder_);
    EXPECT_EQ(shards.global_step, 5 + 4 * save);
    EXPECT_EQ(shards.files.size(), 2U);
    EXPECT_EQ(saved(shards), before);
  }
}

TEST_F(CheckpointClientTest, AWorkerThatHasEndedItsTrainingIsSavedAsItSaidAndNotAsked) {
  make_spec(1, 2);
  start_all_ps();
  const auto stores = join_all(kVariables);
  stores[0]->write(initial_states(kVariables), 0);
  stores[1]->wait_initialised();
  StepDriver driver(*stores[1], false);
  driver.step();
  TaskState ended;
  ended.worker = 1;
  ended.step = 1;
  ended.position.numbers = {{"epoch", 7}};
  stores[1]->send_state(ended);
  stores[1]->set_done();
  stores[0]->set_done();
  ASSERT_TRUE(stores[0]->wait_all_done(Deadline::after(std::chrono::seconds(60))));
  stores[0]->prepare_saving(folder_);
  stores[0]->mark();
  const SavedShards shards = stores[0]->write_shards(folder_);
  EXPECT_FALSE(stores[1]->state_asked());
  ASSERT_EQ(shards.others.size(), 1U);
  EXPECT_EQ(shards.others[0].position.numbers, ended.position.numbers);
}

/// Returns a state that does not fit into one frame.
TaskState large_state(int worker) {
  TaskState state{.worker = worker, .step = 0, .position = {{{"batch", 3}}, {}}, .local = {}};
  state.local.push_back({"train/h", Tensor(DType::kFloat32, {5, 1 << 20})});
  state.local.back().tensor.data<float>()[5'000'000] = float(worker) + 0.5f;
  return state;
}

void expect_is_large_state(const TaskState& state, int worker) {
  EXPECT_EQ(state.worker, worker);
  EXPECT_EQ(state.position.numbers.at("batch"), 3);
  ASSERT_EQ(state.local.size(), 1U);
  EXPECT_EQ(state.local[0].name, "train/h");
  EXPECT_EQ(state.local[0].tensor.shape(), (Shape{5, 1 << 20}));
  EXPECT_EQ(state.local[0].tensor.data<float>()[5'000'000], float(worker) + 0.5f);
}

class WorkersStates : public CheckpointClientTest {
 protected:
  WorkersStates() {
    make_spec(1, 3);
    start_all_ps();
    stores_ = join_all(kVariables);
    chief().prepare_saving(folder_);
  }
  PsStore& chief() { return *stores_[0]; }
  std::vector<std::unique_ptr<PsStore>> stores_;
};

// Worker 1 sends its state, between two of its steps, when the chief asks for it. Worker 2 has left
// before the chief asks.
TEST_F(WorkersStates, ComeWholeHoweverLargeTheyAre) {
  chief().write(initial_states(kVariables), 0);
  for (const auto& store : stores_) store->wait_initialised();
  stores_[2]->send_state(large_state(2));
  stores_[2]->set_done();
  stores_[2]->goodbye();
  chief().mark();
  StepDriver driver(*stores_[1], false);
  do {
    driver.step();
  } while (!stores_[1]->state_asked());
  stores_[1]->send_state(large_state(1));
  SavedShards shards = chief().write_shards(folder_);
  EXPECT_TRUE(shards.lines.empty());
  ASSERT_EQ(shards.others.size(), 2U);
  std::ranges::sort(shards.others, {}, &TaskState::worker);
  expect_is_large_state(shards.others[0], 1);
  expect_is_large_state(shards.others[1], 2);
}

TEST_F(WorkersStates, ComeBackWholeWhenTrainingResumes) {
  const TaskState states[] = {large_state(0), large_state(1), large_state(2)};
  chief().restore(states);
  chief().write(initial_states(kVariables), 0);
  for (const int worker : {1, 2}) {
    stores_[std::size_t(worker)]->wait_initialised();
    ASSERT_TRUE(stores_[std::size_t(worker)]->restored());
    expect_is_large_state(*stores_[std::size_t(worker)]->restored(), worker);
  }
}

TEST_F(WorkersStates, ThatDoNotComeAreNamed) {
  chief().write(initial_states(kVariables), 0);
  stores_[2]->send_state(large_state(2));
  stores_[2]->set_done();
  stores_[2]->goodbye();
  chief().mark();
  const SavedShards shards = chief().write_shards(folder_);
  ASSERT_EQ(shards.lines.size(), 1U);
  EXPECT_THAT(shards.lines[0], HasSubstr("worker:1 did not say within 5 s where it is"));
}

}  // namespace
}  // namespace paceline
