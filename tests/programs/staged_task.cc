// staged_task [--set name=value …] [flags of a cluster]: trains a model whose sizes make one
// parameter server busier than the others, or whose records take long to make. For
// scripts/stage_causes.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "paceline/paceline.h"

using namespace paceline;

namespace {

using Count = Setting<std::int64_t>;

const Count kBatch = batch_setting(32);
const Count kRows = {.name = "rows", .value = 4096, .help = "Rows of the table", .least = 1};
const Count kColumns = {.name = "columns", .value = 64, .help = "Columns of the table", .least = 1};
const Count kIds = {
    .name = "ids", .value = 0, .help = "Rows that an example reads; 0: it reads none"};
const Count kFirst = {
    .name = "first", .value = 1, .help = "Examples read so many rows, from the first on"};
const Count kApart = {
    .name = "apart", .value = 1, .help = "The distance of these rows from each other"};
const Count kInputs = {.name = "inputs", .value = 64, .help = "Numbers of an example", .least = 1};
const Count kUnits = {
    .name = "units", .value = 64, .help = "Units of the dense layers", .least = 1};
const Count kLayers = {
    .name = "layers", .value = 1, .help = "Dense layers, beside each other", .least = 1};
const Setting<std::string> kRule = {.name = "rule",
                                    .value = "adagrad",
                                    .help = "The update rule",
                                    .choices = {"adagrad", "whole", "long"}};
const Count kRecordUs = {.name = "record_us", .value = 0, .help = "Microseconds to make a record"};

const ProgramOptions kOptions = {.about = "Trains a table of rows and dense layers on noise.",
                                 .settings = {kBatch, kRows, kColumns, kIds, kFirst, kApart,
                                              kInputs, kUnits, kLayers, kRule, kRecordUs}};

/// Records that exist only as numbers.
class Numbers : public RecordSource {
 public:
  std::vector<std::int64_t> files() const override { return {100'000}; }
  void read(std::int64_t, Example& to) const override { to.label = 0; }
  std::string name(std::int64_t index) const override { return fmt::format("record {}", index); }
};

Pipeline records_of(const Settings& settings, const Cluster& cluster) {
  const std::chrono::microseconds takes(settings[kRecordUs]);
  return Pipeline(std::make_shared<Numbers>())
      .shard(cluster.task.index, cluster.workers())
      .shuffle(1000)
      .repeat()
      .map("augment", [takes](Example&) { std::this_thread::sleep_for(takes); })
      .into({settings[kInputs]}, "numbers",
            [](Example& example, std::span<float> values) {
              std::ranges::fill(values, float(example.index % 7) - 3);
            })
      .batch(settings[kBatch]);
}

// w ← w − lr·m / |m|, computed for all of w at once.
Rule whole_rule() {
  return CustomRule{.name = "whole",
                    .learning_rate = 1e-3f,
                    .slots = {{"m"}},
                    .update =
                        [](const RuleTerms& r) {
                          const Value m = 0.9 * r.slots[0] + 0.1 * r.gradient;
                          const Value norm = 1e-6 + sqrt(reduce_sum(m * m));
                          return RuleUpdate{r.value - r.learning_rate * m / norm, {m}};
                        },
                    .whole = true};
}

// A rule that takes long for each element.
Rule long_rule() {
  return CustomRule{.name = "long", .learning_rate = 1e-3f, .update = [](const RuleTerms& r) {
                      Value step = r.gradient;
                      for (int i = 0; i < 60; ++i) step = tanh(step);
                      return RuleUpdate{r.value - r.learning_rate * step, {}};
                    }};
}

Rule rule_named(const std::string& name) {
  if (name == "whole") return whole_rule();
  if (name == "long") return long_rule();
  return Adagrad{};
}

void train(const Cluster& cluster, const RunOptions& run, const Settings& settings) {
  const std::int64_t batch = settings[kBatch], ids = settings[kIds];
  Graph graph;
  const Value numbers = graph.input("numbers", {batch, settings[kInputs]});
  const Value labels = graph.input("labels", {batch}, DType::kInt32);
  const std::int64_t layers = settings[kLayers];
  Value loss;
  for (std::int64_t i = 0; i < layers; ++i) {
    const Value part = dense(numbers, settings[kUnits] / layers, fmt::format("dense{}", i));
    const Value mean = reduce_mean(part * part);
    loss = i == 0 ? mean : loss + mean;
  }
  Value chosen;
  if (ids > 0) {
    chosen = graph.input("ids", {batch, ids}, DType::kInt32);
    const Value table = graph.variable("table", {settings[kRows], settings[kColumns]});
    const Value looked_up = embedding_lookup(table, chosen);
    loss = loss + reduce_mean(looked_up * looked_up);
  }
  PipelineFeed feed(records_of(settings, cluster), numbers, labels);
  SessionOptions options = {.examples_per_step = batch, .unit = "records"};
  options.input = [feed] { return feed.report(); };
  Session session(minimize(loss, rule_named(settings[kRule])), cluster, run, options);
  session.add(Progress());
  std::uint64_t drawn = std::uint64_t(cluster.task.index) + 1;
  session.run([&](Feed& step) {
    feed(step);
    if (ids == 0) return;
    const auto first = std::uint64_t(settings[kFirst]);
    const auto apart = std::int32_t(settings[kApart]);
    for (std::int32_t& id : step.data<std::int32_t>(chosen)) {
      drawn = drawn * 6364136223846793005u + 1442695040888963407u;
      id = std::int32_t((drawn >> 33) % first) * apart;
    }
  });
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kOptions, train); }
