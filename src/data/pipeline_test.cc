#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "base/testing/error_of.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/zoo_data.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A source whose records are their own indices, in files of these sizes. Some records cannot be
/// read.
class Numbers : public RecordSource {
 public:
  explicit Numbers(std::vector<std::int64_t> files, std::set<std::int64_t> bad = {})
      : files_(std::move(files)), bad_(std::move(bad)) {}
  std::vector<std::int64_t> files() const override { return files_; }
  void read(std::int64_t index, Example& to) const override {
    ++reads;
    if (bad_.contains(index)) throw Error(ErrorCode::kDataLoss, name(index) + " is torn");
    to.memory = {std::uint8_t(index), std::uint8_t(index >> 8)};
    to.bytes = to.memory;
    to.label = std::int32_t(index);
  }
  std::string name(std::int64_t index) const override { return "number " + std::to_string(index); }
  mutable std::atomic<int> reads = 0;

 private:
  std::vector<std::int64_t> files_;
  std::set<std::int64_t> bad_;
};

std::shared_ptr<Numbers> numbers(std::vector<std::int64_t> files, std::set<std::int64_t> bad = {}) {
  return std::make_shared<Numbers>(std::move(files), std::move(bad));
}

/// Adds a stage that writes the index, epoch and place of each record as its values.
Pipeline& with_facts(Pipeline& pipeline) {
  return pipeline.into({3}, "facts", [](Example& example, std::span<float> values) {
    values[0] = float(example.bytes[0] + 256 * example.bytes[1]);
    values[1] = float(example.epoch);
    values[2] = float(example.place);
  });
}
Pipeline& with_facts(Pipeline&& pipeline) { return with_facts(pipeline); }

struct Read {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<std::int32_t>> labels;
  std::vector<std::vector<float>> weights;
  std::vector<TaskPosition> after;
  bool operator==(const Read&) const = default;
};

Read read(const Pipeline& pipeline, std::size_t most = 1000, const TaskPosition& from = {}) {
  PipelineReader reader(pipeline, from);
  Read read;
  while (read.values.size() < most) {
    const InputBatch* const batch = reader.next();
    if (batch == nullptr) break;
    const auto values = batch->values.data<float>();
    const auto labels = batch->labels.data<std::int32_t>();
    const auto weights = batch->weights.data<float>();
    read.values.emplace_back(values.begin(), values.end());
    read.labels.emplace_back(labels.begin(), labels.end());
    read.weights.emplace_back(weights.begin(), weights.end());
    reader.tell(read.after.emplace_back());
  }
  return read;
}

std::vector<std::int32_t> all_labels(const Read& read) {
  std::vector<std::int32_t> all;
  for (const auto& labels : read.labels) all.insert(all.end(), labels.begin(), labels.end());
  return all;
}

TEST(Pipeline, GivesBatchesInTheOrderOfTheSource) {
  const Read all = read(with_facts(Pipeline(numbers({5}))).batch(2));
  EXPECT_THAT(all.labels, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(all.values[1], ElementsAre(2, 0, 2, 3, 0, 3));
  EXPECT_THAT(all.weights, Each(Each(1)));
}

TEST(Pipeline, FillsTheLastBatchWithZerosThatHaveNoWeight) {
  const Pipeline pipeline = with_facts(Pipeline(numbers({5}))).batch(3, LastBatch::kPad);
  EXPECT_EQ(pipeline.batches(), 2);
  EXPECT_EQ(pipeline.examples(), 5);
  // The memory of the first batch is used again, so no value of that batch may remain in it.
  const Read all = read(Pipeline(pipeline).prefetch(1));
  EXPECT_THAT(all.labels, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 0)));
  EXPECT_THAT(all.weights[1], ElementsAre(1, 1, 0));
  EXPECT_THAT(all.values[1], ElementsAre(3, 0, 3, 4, 0, 4, 0, 0, 0));
}

TEST(Pipeline, RepeatsWithBatchesOfTwoEpochs) {
  const Read all = read(with_facts(Pipeline(numbers({3}))).repeat(2).batch(2));
  EXPECT_THAT(all.labels, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 0), ElementsAre(1, 2)));
  EXPECT_EQ(all.values[1][4], 1);  // the epoch of its second record
}

Pipeline shuffled(int threads) {
  return with_facts(Pipeline(numbers({40, 0, 35, 26}))
                        .interleave(2)
                        .shard(1, 2)
                        .shuffle(16)
                        .seed(9)
                        .repeat())
      .batch(7)
      .threads(threads);
}

TEST(Pipeline, IsTheSameWithAnyNumberOfThreads) {
  const Read one = read(shuffled(1), 40);
  EXPECT_EQ(read(shuffled(2), 40), one);
  EXPECT_EQ(read(shuffled(5), 40), one);
  EXPECT_EQ(read(shuffled(3).prefetch(6), 40), one);
}

TEST(Pipeline, ResumesWithTheVeryNextRecordInTheMiddleOfThePool) {
  const Read all = read(shuffled(2), 30);
  for (std::size_t at = 0; at + 1 < 30; ++at) {
    const Read rest = read(shuffled(3), 29 - at, all.after[at]);
    for (std::size_t i = 0; i < rest.values.size(); ++i) {
      ASSERT_EQ(rest.values[i], all.values[at + 1 + i]);
      ASSERT_EQ(rest.labels[i], all.labels[at + 1 + i]);
      ASSERT_EQ(rest.after[i], all.after[at + 1 + i]);
    }
  }
}

TEST(Pipeline, ShowsEachRecordOncePerEpochAcrossShards) {
  std::multiset<std::int32_t> seen;
  for (int part = 0; part < 3; ++part) {
    const Read own = read(
        with_facts(Pipeline(numbers({10, 13})).interleave(2).shard(part, 3).shuffle(5)).batch(1));
    for (const std::int32_t label : all_labels(own)) seen.insert(label);
  }
  EXPECT_EQ(seen.size(), 23u);
  EXPECT_EQ(std::set<std::int32_t>(seen.begin(), seen.end()).size(), 23u);
}

/// Holds back record 0 until others have passed.
class Gate {
 public:
  explicit Gate(int others) : others_(others) {}
  void pass(std::int64_t index) {
    std::unique_lock lock(mutex_);
    if (index == 0) {
      changed_.wait(lock, [&] { return others_ <= 0; });
    } else {
      --others_;
      changed_.notify_all();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int others_;
};

TEST(Pipeline, DoesNotWaitForASlowRecordWhereOrderDoesNotMatter) {
  const auto gate = std::make_shared<Gate>(20);
  const Pipeline pipeline =
      with_facts(Pipeline(numbers({40}))
                     .map(
                         "slow", [gate](Example& example) { gate->pass(example.index); },
                         MapOrder::kAsFinished))
          .batch(4)
          .prefetch(8)
          .threads(2);
  const Read all = read(pipeline, 1000);
  std::vector<std::int32_t> labels = all_labels(all);
  // The other thread may still hold the record that opened the gate.
  EXPECT_GE(std::ranges::find(labels, 0) - labels.begin(), 19);
  std::ranges::sort(labels);
  for (std::int32_t i = 0; i < 40; ++i) EXPECT_EQ(labels[std::size_t(i)], i);
  // A record that is late is a part of the place in the data.
  EXPECT_EQ(all.after[0].numbers.at("data.late"), 1);
  EXPECT_EQ(all.after[0].numbers.at("data.late.1"), 0);
}

TEST(Pipeline, ResumesWithAllRecordsThatWereNotUsedWhereOrderDoesNotMatter) {
  const auto unordered = [] {
    return with_facts(Pipeline(numbers({100}))
                          .shuffle(30)
                          .map(
                              "nothing", [](Example&) {}, MapOrder::kAsFinished))
        .batch(3)
        .threads(4);
  };
  const Read first = read(unordered(), 20);
  const Read rest = read(unordered(), 1000, first.after.back());
  std::vector<std::int32_t> labels = all_labels(first);
  const std::vector<std::int32_t> others = all_labels(rest);
  labels.insert(labels.end(), others.begin(), others.end());
  EXPECT_EQ(labels.size(), 99u);  // one is left of the last batch
  EXPECT_EQ(std::set<std::int32_t>(labels.begin(), labels.end()).size(), 99u);
}

TEST(Pipeline, ChangesExamplesByStagesOfOnesOwn) {
  const Read all = read(with_facts(Pipeline(numbers({4}))
                                       .map("double", [](Example& e) { e.memory[0] *= 2; })
                                       .map("more", [](Example& e) { e.memory[0] += 1; }))
                            .batch(4));
  EXPECT_EQ(all.values[0][3], 3);
  EXPECT_EQ(all.values[0][9], 7);
}

TEST(Pipeline, ReadsWhatIsCachedOnlyOnce) {
  const auto source = numbers({10});
  std::atomic<int> decoded = 0;
  const Pipeline pipeline =
      with_facts(Pipeline(source).map("decode", [&](Example&) { ++decoded; }).cache(1 << 20))
          .repeat(3)
          .batch(5);
  const Read first = read(pipeline);
  EXPECT_EQ(source->reads, 10);
  EXPECT_EQ(read(pipeline), first);  // copies share the cache
  EXPECT_EQ(source->reads, 10);
  EXPECT_EQ(decoded, 10);
}

TEST(Pipeline, MakesAnewWhatDoesNotFitTheCache) {
  const auto source = numbers({10});
  const Pipeline pipeline = with_facts(Pipeline(source).cache(300)).repeat(2).batch(5).threads(1);
  EXPECT_THAT(all_labels(read(pipeline)),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_GT(source->reads, 10);
  EXPECT_LT(source->reads, 20);
}

TEST(Pipeline, NamesABadRecordAndHowToGoOn) {
  const Pipeline pipeline = with_facts(Pipeline(numbers({6}, {4}))).batch(2);
  PipelineReader reader(pipeline);
  EXPECT_NE(reader.next(), nullptr);  // what comes before it is good
  EXPECT_NE(reader.next(), nullptr);
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { reader.next(); }),
              AllOf(HasSubstr("number 4 is torn"), HasSubstr("--max-bad")));
}

TEST(Pipeline, PutsTheNextGoodRecordInThePlaceOfABadOne) {
  std::mutex mutex;
  std::vector<std::string> said;
  const Pipeline pipeline = with_facts(Pipeline(numbers({6}, {1, 2, 5})))
                                .repeat(3)
                                .batch(3)
                                .max_bad(3)
                                .on_bad([&](const std::string& bad) {
                                  const std::lock_guard lock(mutex);
                                  said.push_back(bad);
                                });
  PipelineReader reader(pipeline);
  const InputBatch* batch = reader.next();
  EXPECT_THAT(batch->labels.data<std::int32_t>(), ElementsAre(0, 3, 3));
  EXPECT_THAT(batch->weights.data<float>(), ElementsAre(1, 0, 0));
  EXPECT_EQ(batch->records, 1);
  batch = reader.next();
  EXPECT_THAT(batch->labels.data<std::int32_t>(), ElementsAre(3, 4, 0));
  EXPECT_THAT(batch->weights.data<float>(), ElementsAre(1, 1, 0));
  while (reader.next() != nullptr) {
  }
  std::ranges::sort(said);
  EXPECT_THAT(said, ElementsAre("number 1 is torn", "number 2 is torn", "number 5 is torn"));
  EXPECT_EQ(reader.report().bad, 3);
}

TEST(Pipeline, EndsWhenMoreRecordsAreBadThanAllowed) {
  const Pipeline pipeline = with_facts(Pipeline(numbers({6}, {1, 3}))).batch(6).max_bad(1);
  PipelineReader reader(pipeline);
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { reader.next(); }),
              HasSubstr("2 bad records, and only 1 may be left out; the last: number"));
}

TEST(Pipeline, EndsWhenNoRecordIsGood) {
  const Pipeline pipeline = with_facts(Pipeline(numbers({2}, {0, 1}))).batch(2).max_bad(2);
  PipelineReader reader(pipeline);
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { reader.next(); }),
              HasSubstr("all records of the data are bad"));
}

TEST(Pipeline, HandsOnWhatAStageOfOnesOwnThrows) {
  const Pipeline pipeline = with_facts(Pipeline(numbers({4})).map("fails", [](Example& example) {
                              if (example.index == 3) throw std::runtime_error("no threes");
                            })).batch(2);
  PipelineReader reader(pipeline);
  EXPECT_NE(reader.next(), nullptr);
  EXPECT_THROW(reader.next(), std::runtime_error);
}

TEST(Pipeline, EndsBeforeItsDataDoes) {
  PipelineReader unused(shuffled(3));
  PipelineReader used(shuffled(3));
  EXPECT_NE(used.next(), nullptr);
}

TEST(Pipeline, ReportsItsStages) {
  const Pipeline pipeline =
      with_facts(Pipeline(numbers({8})).map("decode", [](Example&) {}).cache(1 << 20))
          .shuffle(16)
          .repeat(2)
          .batch(4)
          .threads(2);
  PipelineReader reader(pipeline);
  EXPECT_EQ(InputReport().slowest(), nullptr);
  while (reader.next() != nullptr) {
  }
  const InputReport report = reader.report();
  EXPECT_EQ(report.records, 16);
  EXPECT_EQ(report.batches, 4);
  EXPECT_EQ(report.most_threads, 2);
  EXPECT_GE(report.seconds, report.waited);
  std::map<std::string, StageReport> stages;
  for (const StageReport& stage : report.stages) stages[stage.name] = stage;
  EXPECT_EQ(report.stages.front().name, "order");
  EXPECT_EQ(stages.at("order").records, 16);
  EXPECT_EQ(stages.at("order").fill, 0.0);  // nothing is left
  EXPECT_EQ(stages.at("facts").records, 16);
  EXPECT_EQ(stages.at("read").records, stages.at("decode").records);
  EXPECT_EQ(stages.at("cache").fill, 1);
  EXPECT_GT(stages.at("read").records_per_s, 0);
  ASSERT_TRUE(stages.contains("prefetch"));
  EXPECT_LE(stages.at("prefetch").fill.value_or(2), 1);
  EXPECT_GT(report.capacity(), 0);
  EXPECT_NE(report.slowest(), nullptr);
}

TEST(Pipeline, RefusesWhatCannotBe) {
  Pipeline pipeline(numbers({2}));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { pipeline.shard(2, 3); }),
              HasSubstr("part 2 of 3 is empty: the data holds only 2 records"));
  error_of(ErrorCode::kInvalidArgument, [&] { pipeline.shard(3, 3); });
  error_of(ErrorCode::kInvalidArgument, [&] { pipeline.batch(0); });
  error_of(ErrorCode::kInvalidArgument, [&] { pipeline.shuffle(0); });
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [] { Pipeline(numbers({0})); }),
              HasSubstr("holds no record"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { PipelineReader reader(pipeline); }),
              HasSubstr("call batch()"));
  pipeline.batch(1);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { PipelineReader reader(pipeline); }),
              HasSubstr("call distort() or into()"));
}

TEST(Pipeline, DistortsImagesIntoBatches) {
  std::vector<std::uint8_t> pixels(2 * 3 * 32 * 32, 7);
  const Pipeline pipeline =
      Pipeline(images_in_memory(pixels, {1, 2})).distort(cifar10_distortion(false, 1)).batch(2);
  PipelineReader reader(pipeline);
  const InputBatch* const batch = reader.next();
  EXPECT_EQ(batch->values.shape(), (Shape{2, 3, 24, 24}));
  EXPECT_THAT(batch->values.data<float>(), Each(0.0f));
  EXPECT_THAT(batch->labels.data<std::int32_t>(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace paceline
