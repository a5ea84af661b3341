// The progress of all tasks, as the chief of a job hears it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "params/testing/collective_fixture.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Texts = std::map<std::string, std::string>;

// Asks until this many tasks have answered.
Texts ask(JobControl& chief, ProgressBoard& board, std::size_t tasks) {
  Texts texts;
  std::int64_t heard_so_far = 0;
  board.heard_after(heard_so_far);
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  while (texts.size() < tasks && !deadline.passed()) {
    chief.ask_progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (const auto& heard : board.heard_after(heard_so_far)) texts[heard.task] = heard.text;
  }
  return texts;
}

class ProgressJob : public JobFixture {};

TEST_F(ProgressJob, TheChiefHearsOfEachPsAndOfEachOtherWorker) {
  make_spec(2, 3);
  for (int ps = 0; ps < 2; ++ps) {
    PsOptions options = ps_options(ps);
    options.progress_text = [ps](const PsSummary& now) {
      return "ps " + std::to_string(ps) + " applied " + std::to_string(now.applied);
    };
    ps_tasks_.push_back(start_ps(options));
  }
  std::vector<ProgressBoard> boards(3);
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {64, 8}}};
  std::vector<std::unique_ptr<PsStore>> stores;
  for (int worker = 0; worker < 3; ++worker) {
    boards[std::size_t(worker)].tell("worker " + std::to_string(worker));
    PsStoreOptions options = store_options(worker);
    options.progress = &boards[std::size_t(worker)];
    stores.push_back(PsStore::join(options, variables));
  }
  EXPECT_THAT(ask(*stores[0], boards[0], 4),
              ElementsAre(Pair("ps:0", "ps 0 applied 0"), Pair("ps:1", "ps 1 applied 0"),
                          Pair("worker:1", "worker 1"), Pair("worker:2", "worker 2")));
  EXPECT_TRUE(boards[1].wanted()) << "it is to tell something newer";
  EXPECT_FALSE(boards[0].wanted()) << "nobody has asked the chief";
  boards[1].tell("worker 1, later");
  EXPECT_FALSE(boards[1].wanted());
  ask(*stores[0], boards[0], 4);
  EXPECT_EQ(ask(*stores[0], boards[0], 4)["worker:1"], "worker 1, later");
  for (const auto& store : stores) store->goodbye();
}

TEST_F(ProgressJob, ATaskThatTellsNothingAnswersNothing) {
  make_spec(1, 2);
  start_all_ps();
  ProgressBoard board;
  std::vector<std::unique_ptr<PsStore>> stores;
  for (int worker = 0; worker < 2; ++worker) {
    PsStoreOptions options = store_options(worker);
    if (worker == 0) options.progress = &board;
    stores.push_back(PsStore::join(options, {{.name = "w", .shape = {4}}}));
  }
  EXPECT_THAT(ask(*stores[0], board, 2), ElementsAre(Pair("ps:0", ""), Pair("worker:1", "")));
  for (const auto& store : stores) store->goodbye();
}

class ProgressOfAllReduce : public CollectiveFixture {};

TEST_P(ProgressOfAllReduce, TheChiefHearsOfEachOtherWorker) {
  make_spec(3);
  std::vector<ProgressBoard> boards(3);
  Stores stores(3);
  each({0, 1, 2}, [&](int worker) {
    boards[std::size_t(worker)].tell("worker " + std::to_string(worker));
    CollectiveOptions how = options(worker);
    how.progress = &boards[std::size_t(worker)];
    stores[std::size_t(worker)] = CollectiveStore::join(how, {{.name = "w", .shape = {64, 8}}});
  });
  EXPECT_THAT(ask(*stores[0], boards[0], 2),
              ElementsAre(Pair("worker:1", "worker 1"), Pair("worker:2", "worker 2")));
  each(stores, [](CollectiveStore& store) { store.goodbye(); });
}

INSTANTIATE_TEST_SUITE_P(Ways, ProgressOfAllReduce,
                         ::testing::Values(CollectiveWay{.name = "inproc"},
                                           CollectiveWay{.name = "tcp", .link = "tcp"}),
                         [](const auto& way) { return std::string(way.param.name); });

TEST(ProgressBoard, WhoeverListensHearsTheNewestOfEachTaskOnce) {
  ProgressBoard board;
  std::int64_t one = 0, other = 0;
  const auto heard = [&](std::int64_t& after) {
    Texts texts;
    for (const auto& each : board.heard_after(after)) texts[each.task] = each.text;
    return texts;
  };
  board.heard("ps:0", "a");
  board.heard("worker:1", "b");
  board.heard("ps:0", "c");
  EXPECT_THAT(heard(one), ElementsAre(Pair("ps:0", "c"), Pair("worker:1", "b")));
  EXPECT_TRUE(heard(one).empty());
  board.heard("worker:1", "d");
  EXPECT_THAT(heard(one), ElementsAre(Pair("worker:1", "d")));
  EXPECT_THAT(heard(other), ElementsAre(Pair("ps:0", "c"), Pair("worker:1", "d")));
}

TEST(ProgressBoard, ATextThatIsTooLongSaysNothing) {
  ProgressBoard board;
  board.tell(std::string(kMostProgressBytes + 1, 'x'));
  EXPECT_EQ(board.asked(), "");
}

}  // namespace
}  // namespace paceline
