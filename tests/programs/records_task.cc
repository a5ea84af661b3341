// records_task [flags of a cluster]: trains one epoch of numbered records. Each record subtracts 1
// from its own element, so the values tell how often it was applied: once, or as a half or a third
// in the mean of two or three workers.
//
// $PACELINE_RECORD_MS says how many milliseconds each record takes to read. With $PACELINE_BLOCKS,
// the records are the batches of a text, one for each step. For the test of records that are shared
// out.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "paceline/input.h"
#include "paceline/ops.h"
#include "paceline/program.h"
#include "paceline/session.h"

namespace paceline {
namespace {

constexpr std::int64_t kRecords = 600, kBatch = 10;

void take_time() {
  const char* const ms = std::getenv("PACELINE_RECORD_MS");
  std::this_thread::sleep_for(std::chrono::milliseconds(ms == nullptr ? 0 : std::atoi(ms)));
}

class NumberedRecords : public RecordSource {
 public:
  std::vector<std::int64_t> files() const override { return {kRecords}; }
  void read(std::int64_t, Example&) const override { take_time(); }
  std::string name(std::int64_t index) const override { return fmt::format("record {}", index); }
};

void feed_batch(Feed& step, SharedBatches& batches, Value chosen) {
  const auto next = batches.next(step.record_blocks());
  if (!next) return step.stop();
  batches.use(step.position());
  take_time();
  const auto values = step.data<float>(chosen);
  std::ranges::fill(values, 0.0f);
  values[std::size_t(next->index)] = 1;
}

void train(const Cluster& cluster, const RunOptions& run) {
  Graph graph;
  const Value chosen = graph.input("chosen", {kBatch, kRecords});
  const Value labels = graph.input("labels", {kBatch}, DType::kInt32);
  const Value uses = graph.variable("uses", {kRecords, 1}, Initializer::zeros());
  const Value loss = reduce_sum(matmul(chosen, uses));
  // With clipping, a contribution is applied only when its step ends, and never in part.
  Session session(minimize(loss, Sgd{.learning_rate = 1}, {.clip_norm = 1e9f}), cluster, run);
  Pipeline records = Pipeline(std::make_shared<NumberedRecords>())
                         .shuffle(kRecords)
                         .into({kRecords}, "choose",
                               [](Example& example, std::span<float> values) {
                                 std::ranges::fill(values, 0.0f);
                                 values[std::size_t(example.index)] = 1;
                               })
                         .threads(1)
                         .batch(kBatch, LastBatch::kPad);
  if (cluster.shares_records()) records.share_out();
  PipelineFeed feed(records, chosen, labels);
  SharedBatches batches(kRecords, 16, 1);
  session.run([&](Feed& step) {
    if (std::getenv("PACELINE_BLOCKS") == nullptr) {
      feed(step);
    } else {
      feed_batch(step, batches, chosen);
    }
    fmt::print("reads batch {}\n", step.step());
    std::fflush(stdout);
  });
  if (!session.cluster().is_chief()) return;
  session.finish_training();
  std::int64_t once = 0, never = 0;
  const Tensor counts = session.variables().get("uses");
  for (const float count : counts.data<float>()) {
    const long sixths = std::lround(-6 * count);
    once += sixths == 6 || sixths == 3 || sixths == 2 ? 1 : 0;
    never += count == 0 ? 1 : 0;
  }
  session.save();
  fmt::print("{} records were used once, {} never, {} more often\n", once, never,
             kRecords - once - never);
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) { return paceline::run_program(argc, argv, paceline::train); }
