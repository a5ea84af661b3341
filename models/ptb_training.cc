#include "models/ptb_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/program.h"

namespace paceline::models {
namespace {

constexpr std::chrono::seconds kProgressEvery{5};

// The states forget at a block's beginning, and a slow worker may hold one at the end of an epoch.
constexpr std::int64_t kMostOfBlock = 16, kLeastBlocksOfWorker = 4;

std::int64_t block_of(std::int64_t batches, int workers) {
  return std::clamp<std::int64_t>(batches / (kLeastBlocksOfWorker * workers), 1, kMostOfBlock);
}

SessionOptions session_options(const PtbConfig& config, const PtbData& data,
                               const PerplexityEnds& ends) {
  SessionOptions options;
  options.model = "ptb";
  options.unit = "words";
  options.data_names["words"] = data.words;
  options.modules = ptb_modules(config);
  options.shared_records = data.train.front().size();
  options.examples_per_step = config.batch * config.unroll;
  options.summarise = [&ends] {
    std::vector<std::pair<std::string, double>> numbers;
    if (const auto last = ends.last()) numbers.emplace_back("perplexity", *last);
    return numbers;
  };
  return options;
}

/// Adds each step to the epoch and to the perplexities of the training's ends.
class EpochSteps : public Hook {
 public:
  EpochSteps(std::optional<PtbEpoch>& epoch, PerplexityEnds& ends, std::int64_t unroll)
      : epoch_(epoch), ends_(ends), unroll_(unroll) {}
  bool after_step(Session& session, const StepResult& result) override {
    epoch_->add_step(session, result.loss);
    ends_.add(result.loss, unroll_);
    return true;
  }

 private:
  std::optional<PtbEpoch>& epoch_;
  PerplexityEnds& ends_;
  std::int64_t unroll_;
};

}  // namespace

PtbTraining::PtbTraining(const PtbConfig& config, const std::string& folder, const Cluster& cluster,
                         const RunOptions& run)
    : config_(config),
      data_(read_ptb(folder, config, cluster.task.index, cluster.workers(), cluster.towers,
                     cluster.shares_records())),
      by_epochs_(!run.steps && !run.seconds),
      computes_(computes(cluster.device)),
      workers_(cluster.workers()),
      train_(build_ptb(train_graph_, config, config.batch, config.unroll, true,
                       cluster.shares_records())),
      valid_(build_ptb(valid_graph_, config, config.batch, config.unroll, false)),
      test_(build_ptb(test_graph_, config, 1, 1, false)),
      session_(ptb_minimize(train_, config), cluster, run, session_options(config, data_, ends_)) {
  if (cluster.shares_records()) {
    shared_.emplace(steps(), block_of(steps(), workers_),
                    by_epochs_ ? std::optional(config.epochs) : std::nullopt);
  }
  session_.share(valid_graph_).share(test_graph_);
  session_.on_save([this](TaskPosition& position) { tell_position(position); });
  session_.add(EpochSteps(epoch_, ends_, config.unroll))
      .add(Progress(kProgressEvery,
                    by_epochs_ ? config.epochs * steps() / (shared_ ? workers_ : 1) : 0));
}

void PtbTraining::run() {
  if (session_.cluster().is_chief()) {
    for (const std::string& note : data_.notes) session_.print(note);
  }
  for (const char* key : {"first", "last", "train", "valid", "test"}) {
    session_.report("perplexity", key, {});
  }
  Begin from = begin();
  while ((!by_epochs_ || from.epoch < config_.epochs) && run_epoch(from.epoch, from)) {
    from = {.epoch = next_epoch_};
  }
  // Only the chief waits for the other workers.
  if (!by_epochs_ || !session_.cluster().is_chief()) return;
  if (session_.cluster().workers() > 1) session_.print("waiting for the other workers to end");
  session_.finish_training();
  if (computes_) test();
  session_.save();
}

PtbTraining::Begin PtbTraining::begin() {
  const std::int64_t size = steps(), made = session_.last_step().step;
  const TaskPosition& saved = session_.position();
  if (shared_) {
    check_same_batches();
    return {.cost = std::nan("")};  // the first batch says which epoch it is
  }
  if (saved.numbers.contains("epoch") && saved.numbers.contains("batch")) {
    if (const auto other = begin_of_other_batches()) return *other;
    const auto cost = saved.sums.find("cost");
    return {.epoch = saved.numbers.at("epoch"),
            .step = saved.numbers.at("batch"),
            .cost = cost != saved.sums.end() ? cost->second : std::nan(""),
            .keep_state = true};
  }
  return {.epoch = made / size, .step = made % size, .cost = std::nan("")};
}

// The position counts batches. With other batches, training goes on after as many words.
std::optional<PtbTraining::Begin> PtbTraining::begin_of_other_batches() {
  const auto& saved = session_.position().numbers;
  const auto rows = saved.find("rows"), unroll = saved.find("unroll");
  if (rows == saved.end() || unroll == saved.end()) return {};
  if (rows->second == this->rows() && unroll->second == config_.unroll) return {};
  const std::int64_t words = saved.at("batch") * rows->second * unroll->second;
  const std::int64_t step = std::min(words / (this->rows() * config_.unroll), steps());
  session_.print(fmt::format(
      "the checkpoint was saved with batch {} and unroll {}, this run has {} and {}: it goes on "
      "after as many words, at batch {} of epoch {}, with a fresh LSTM state",
      rows->second, unroll->second, this->rows(), config_.unroll, step, saved.at("epoch") + 1));
  return Begin{.epoch = saved.at("epoch"), .step = step, .cost = std::nan("")};
}

void PtbTraining::check_same_batches() const {
  const auto& saved = session_.position().numbers;
  const auto rows = saved.find("rows"), unroll = saved.find("unroll");
  if (rows == saved.end() || unroll == saved.end()) return;
  if (rows->second == this->rows() && unroll->second == config_.unroll) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the checkpoint was saved with batch {} and unroll {}, this run has {} and "
                  "{}: with --shard dynamic its batches must be the same",
                  rows->second, unroll->second, this->rows(), config_.unroll));
}

// A run in which each worker has a part of its own goes on after as much of the text.
void PtbTraining::tell_position(TaskPosition& position) const {
  position.numbers["rows"] = rows();
  position.numbers["unroll"] = config_.unroll;
  position.numbers["epoch"] = epoch_number_;
  if (shared_) {
    position.numbers["batch"] = epoch_ ? epoch_->shared_batch() / workers_ : 0;
    return;
  }
  position.numbers["batch"] = epoch_ ? epoch_->steps_made() : 0;
  if (epoch_ && epoch_->knows_all()) position.sums["cost"] = epoch_->cost();
}

bool PtbTraining::run_epoch(std::int64_t epoch, const Begin& begin) {
  session_.set_learning_rate_factor(config_.rate_factor(epoch));
  PtbEpoch& progress = epoch_.emplace(steps(), rows(), config_.unroll);
  progress.begin_at(begin.step, begin.cost);
  epoch_number_ = epoch;
  next_epoch_ = epoch + 1;
  if (!shared_) say_epoch();
  if (!begin.keep_state) session_.reset_locals(train_graph_);
  session_.report("perplexity", "valid", {});
  bool go_on = false;
  try {
    go_on = train();
  } catch (...) {
    report_training(progress);  // as far as it got
    throw;
  }
  if (shared_ && progress.steps_made() == 0) return go_on && progress.whole();
  report_training(progress);
  if (!progress.whole()) return false;
  session_.print(
      fmt::format("Epoch: {} Train Perplexity: {:.3f}", epoch + 1, progress.perplexity()));
  session_.print(fmt::format("Epoch: {} Time: {:.1f} s", epoch + 1, progress.seconds()));
  session_.summarise("perplexity/train", progress.perplexity());
  validate(epoch);
  return go_on;
}

void PtbTraining::report_training(const PtbEpoch& epoch) {
  session_.report("perplexity", "first", ends_.first());
  session_.report("perplexity", "last", ends_.last());
  session_.report("perplexity", "train", epoch.perplexity());
}

void PtbTraining::say_epoch() {
  session_.print(fmt::format("Epoch: {} Learning rate: {:.3f}", epoch_number_ + 1,
                             config_.learning_rate * config_.rate_factor(epoch_number_)));
}

std::optional<std::int64_t> PtbTraining::next_batch(Feed& feed) {
  if (shared_) return next_shared_batch(feed);
  if (epoch_->at_end()) return {};
  return epoch_->next_batch();
}

// The batches that a lost worker has left of an earlier epoch are read in this one.
std::optional<std::int64_t> PtbTraining::next_shared_batch(Feed& feed) {
  const auto next = shared_->next(feed.record_blocks());
  if (next && next->epoch <= epoch_number_) {
    shared_->use(feed.position());
    if (epoch_->fed() == 0) say_epoch();
    epoch_->feed_shared(next->index);
    carry_ = next->begins_block ? 0.0f : 1.0f;
    return next->index;
  }
  if (next || by_epochs_) epoch_->end_shared();
  next_epoch_ = next ? next->epoch : config_.epochs;
  return {};
}

bool PtbTraining::train() {
  std::int64_t batch = 0;
  return session_.run([&](Feed& feed) {
    const std::size_t tower = std::size_t(feed.step()) % data_.train.size();
    if (tower == 0) {
      const auto next = next_batch(feed);
      if (!next) return feed.stop();
      batch = *next;
    }
    if (shared_) feed.data<float>(train_.carry)[0] = carry_;
    data_.train[tower].fill(batch, feed.data<std::int32_t>(train_.inputs),
                            feed.data<std::int32_t>(train_.targets));
  });
}

void PtbTraining::validate(std::int64_t epoch) {
  const double perplexity = evaluate(valid_graph_, valid_, data_.valid, config_.unroll);
  session_.report("perplexity", "valid", perplexity);
  session_.summarise("perplexity/valid", perplexity);
  session_.print(fmt::format("Epoch: {} Valid Perplexity: {:.3f}", epoch + 1, perplexity));
}

void PtbTraining::test() {
  const double perplexity = evaluate(test_graph_, test_, data_.test, 1);
  session_.report("perplexity", "test", perplexity);
  session_.summarise("perplexity/test", perplexity);
  session_.print(fmt::format("Test Perplexity: {:.3f}", perplexity));
}

double PtbTraining::evaluate(const Graph& graph, const PtbGraph& ptb, const TextBatches& batches,
                             std::int64_t time_steps) {
  session_.begin_evaluation();
  session_.reset_locals(graph);
  Perplexity perplexity;
  for (std::int64_t batch = 0; batch < batches.size(); ++batch) {
    const auto cost = session_.evaluate_in_place(graph, {&ptb.cost, 1}, [&](Feed& feed) {
      batches.fill(batch, feed.data<std::int32_t>(ptb.inputs),
                   feed.data<std::int32_t>(ptb.targets));
    });
    perplexity.add(*cost[0].as<float>(), time_steps);
  }
  return perplexity.value();
}

}  // namespace paceline::models
