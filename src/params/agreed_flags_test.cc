#include "params/joined_strategy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/frame.h"
#include "params/protocol/flag_difference.h"

namespace paceline {
namespace {

constexpr std::uint64_t kSeed = 1;

Cluster worker_of_a_job() {
  Cluster cluster;
  cluster.process = Cluster::Process::kTask;
  cluster.spec = {.ps = {"a:1"}, .workers = {"b:1", "c:1"}};
  return cluster;
}

std::string difference(void (*change)(Cluster&), std::uint64_t seed = kSeed) {
  Cluster other = worker_of_a_job();
  change(other);
  return flag_difference(agreed_flags(worker_of_a_job(), kSeed, {}), "the chief",
                         agreed_flags(other, seed, {}), "worker:1");
}

using Names = std::vector<std::string>;

std::string difference_of_data(const AgreedData& chief, const AgreedData& worker,
                               Sharding sharding = Sharding::kStatic) {
  Cluster cluster = worker_of_a_job();
  cluster.train.sharding = sharding;
  return flag_difference(agreed_flags(cluster, kSeed, chief), "the chief",
                         agreed_flags(cluster, kSeed, worker), "worker:1");
}

std::string difference_of_names(const Names& chief, const Names& worker) {
  return difference_of_data({.names = {{"classes", chief}, {"steps", {"a"}}}},
                            {.names = {{"classes", worker}, {"steps", {"a"}}}});
}

TEST(AgreedFlags, OfWorkersOfOneJobAgree) {
  const auto change = [](Cluster& c) {
    c.task.index = 1;
    c.towers = c.threads = 4;
    c.strategy.name = "async";  // the default name
    c.links.wire = DType::kBFloat16;
  };
  EXPECT_EQ(difference(change), "");
}

TEST(AgreedFlags, EachThatDiffersIsNamedWithBothValues) {
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.name = "sync"; }),
            "the chief's --strategy is async, that of worker:1 is sync");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.staleness = 3; }),
            "the chief's --staleness is 0, that of worker:1 is 3");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.replicas = 1; }),
            "the chief's --replicas-to-aggregate is all, that of worker:1 is 1");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.late = LateContribution::kFold; }),
            "the chief's --late is drop, that of worker:1 is fold");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.local_steps = 5; }),
            "the chief's --local-steps is 20, that of worker:1 is 5");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.outer_rate = 1; }),
            "the chief's --outer-rate is 0.7, that of worker:1 is 1");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.outer_momentum = 0; }),
            "the chief's --outer-momentum is 0.5, that of worker:1 is 0");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.outer_fragments = 2; }),
            "the chief's --outer-fragments is the usual, that of worker:1 is 2");
  EXPECT_EQ(difference([](Cluster& c) { c.strategy.outer_async = true; }),
            "the chief's --outer is sync, that of worker:1 is async");
  EXPECT_EQ(difference([](Cluster& c) { c.train.accumulate = 4; }),
            "the chief's --accumulate is 1, that of worker:1 is 4");
  EXPECT_EQ(difference([](Cluster& c) { c.train.sharding = Sharding::kDynamic; }),
            "the chief's --shard is static, that of worker:1 is dynamic");
  EXPECT_EQ(difference([](Cluster& c) { c.train.sync_batch_norm = true; }),
            "the chief's --sync-batch-norm is not given, that of worker:1 is given");
  EXPECT_EQ(difference([](Cluster& c) { c.train.on_nan = OnNan::kSkip; }),
            "the chief's --on-nan is stop, that of worker:1 is skip");
  EXPECT_EQ(difference([](Cluster& c) { c.links.collectives = "mpi"; }),
            "the chief's --collectives is link, that of worker:1 is mpi");
  EXPECT_EQ(difference([](Cluster& c) { c.links.security.tls = Tls::kAlways; }),
            "the chief's --tls is off-host, that of worker:1 is on");
  EXPECT_EQ(difference([](Cluster& c) { c.links.security.tls = Tls::kNever; }),
            "the chief's --insecure is not given, that of worker:1 is given");
  EXPECT_EQ(difference([](Cluster&) {}, 7), "the chief's --seed is 1, that of worker:1 is 7");
}

TEST(AgreedFlags, TheFirstNameOfTheDataThatDiffersIsNamed) {
  const Names names = {"bird", "cat", "dog"};
  EXPECT_EQ(difference_of_names(names, names), "");
  EXPECT_EQ(difference_of_names(names, {"bird", "dog", "cat"}),
            "the chief's number 1 of the classes is 'cat', that of worker:1 is 'dog'");
  EXPECT_EQ(difference_of_names(names, {"bird", "cat"}),
            "the chief's number 2 of the classes is 'dog', that of worker:1 is missing");
  EXPECT_EQ(difference_of_names(names, {"bird", "cat", "dog", "owl"}),
            "the chief's number 3 of the classes is missing, that of worker:1 is 'owl'");
  EXPECT_EQ(difference_of_names(names, {}),
            "the chief's number 0 of the classes is 'bird', that of worker:1 is missing");
  EXPECT_EQ(difference_of_names({}, names),
            "the chief's number 0 of the classes is missing, that of worker:1 is 'bird'");
  EXPECT_EQ(difference_of_names({"a\tb\nc"}, {"a\tb\nd"}),
            "the chief's number 0 of the classes is 'a?b?c', that of worker:1 is 'a?b?d'");
}

TEST(AgreedFlags, OfTenThousandWordsTheFirstThatDiffersIsNamed) {
  Names words;
  for (int i = 0; i < 10'000; ++i) words.push_back(fmt::format("some-long-word-{}", i));
  Names others = words;
  others[6000] = "another";
  EXPECT_EQ(difference_of_names(words, others),
            "the chief's number 6000 of the classes is 'some-long-word-6000', that of worker:1 is "
            "'another'");
}

TEST(AgreedFlags, FitAHelloHoweverManyNamesThereAre) {
  Names names(1'000'000, "a name of some length, and of many");
  AgreedData data = {.names = {{"classes", names}, {"words", names}}};
  std::size_t bytes = 0;
  for (const std::string& line : agreed_flags(worker_of_a_job(), kSeed, data)) bytes += line.size();
  EXPECT_LT(bytes, kMaxHelloBytes / 2);
  AgreedData other = data;
  other.names["words"][5000] = "another";
  EXPECT_THAT(difference_of_data(data, other),
              ::testing::MatchesRegex("the chief's digest of numbers 4885 to 5861 of the words is "
                                      "[0-9a-f]+, that of worker:1 is [0-9a-f]+"));
}

TEST(AgreedFlags, AWordOfAnyLengthFitsAText) {
  const Names names = {std::string(100'000, 'x')};
  for (const std::string& line :
       agreed_flags(worker_of_a_job(), kSeed, {.names = {{"words", names}}})) {
    EXPECT_LT(line.size(), 2000);
  }
}

TEST(AgreedFlags, WhatElseMustBeAlikeIsNamedWithBothValues) {
  EXPECT_EQ(difference_of_data({.others = {{"torch", "2.5.1"}}}, {.others = {{"torch", "2.6.0"}}}),
            "the chief's torch is 2.5.1, that of worker:1 is 2.6.0");
}

TEST(AgreedFlags, TheNumberOfRecordsIsAgreedOnWhereTheyAreSharedOut) {
  EXPECT_EQ(difference_of_data({.records = 300}, {.records = 200}), "");
  EXPECT_EQ(difference_of_data({.records = 300}, {.records = 200}, Sharding::kDynamic),
            "the chief's number of records is 300, that of worker:1 is 200");
}

TEST(FlagDifference, IsFitToBePrintedWhateverTheOtherSays) {
  const auto difference_from = [](const Names& theirs) {
    return flag_difference(Names{"--a\t1", "--b\t2"}, "worker:0", theirs, "worker:1");
  };
  EXPECT_EQ(difference_from({"--a\t1", "--b\t2"}), "");
  EXPECT_EQ(difference_from({}), "worker:0's --a is 1, that of worker:1 is missing");
  EXPECT_EQ(difference_from({"--a\t1"}), "worker:0's --b is 2, that of worker:1 is missing");
  EXPECT_EQ(difference_from({"--b\t2"}), "worker:0's --a is 1, that of worker:1 is missing");
  EXPECT_EQ(difference_from({"--a"}), "worker:0's --a is 1, that of worker:1 is missing");
  EXPECT_EQ(difference_from({"--a\t\x1b[31m"}), "worker:0's --a is 1, that of worker:1 is ?[31m");
  EXPECT_EQ(difference_from({"--a\t1", "--b\t2", "--c\t3"}),
            "worker:0's --c is missing, that of worker:1 is 3");
  EXPECT_EQ(difference_from({"--a\t1", "--c\t3", "--b\t2"}),
            "worker:0's --c is missing, that of worker:1 is 3");
  EXPECT_LT(difference_from({"--a\t" + std::string(30'000, 'x')}).size(), 200);
  EXPECT_LT(difference_from({"--a\t1", "--b\t2", std::string(30'000, 'x')}).size(), 200);
}

}  // namespace
}  // namespace paceline
