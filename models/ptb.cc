#include "models/ptb.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "models/perplexity.h"
#include "models/ptb_config.h"
#include "models/ptb_data.h"
#include "models/ptb_graph.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/evaluator.h"
#include "paceline/hooks.h"
#include "paceline/program.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kLines = 16;  // the number that is computed at once

Vocabulary vocabulary_of(const SavedModel& saved) {
  const auto words = saved.data_names.find("words");
  if (words != saved.data_names.end()) return Vocabulary::of(words->second);
  throw Error(ErrorCode::kFailedPrecondition,
              saved.path +
                  " does not tell its words: a checkpoint of a run does, and a lone file "
                  "of variables cannot be used for a text");
}

std::vector<TextLine> read_lines(const Vocabulary& vocabulary, const std::string& path) {
  try {
    return vocabulary.read_lines(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kUsage, fmt::format("--data {}: {}", path, error.what()));
  }
}

/// Computes the perplexities of lines, some words of each line at a time. For each line the LSTM
/// states begin at zero.
class LineCosts {
 public:
  LineCosts(const SavedModel& saved, const PtbConfig& config, std::int32_t end)
      : words_(config.unroll),
        end_(end),
        ptb_(build_ptb_lines(graph_, config, kLines, words_)),
        predictor_(graph_, outputs(), saved.path, {.modules = ptb_modules(config)}) {}

  /// Returns the perplexity of each of at most kLines lines.
  std::vector<Perplexity> of(std::span<const TextLine> lines) const {
    std::vector<Perplexity> found(lines.size());
    std::vector<Tensor> states;
    for (const Value& state : ptb_.states) {
      states.emplace_back(state.dtype(), Shape{std::int64_t(lines.size()), state.shape()[1]});
    }
    std::size_t longest = 0;
    for (const TextLine& line : lines) longest = std::max(longest, line.ids.size() + 1);
    for (std::size_t first = 0; first < longest; first += std::size_t(words_)) {
      add(lines, first, states, found);
    }
    return found;
  }

 private:
  std::vector<Value> outputs() const {
    std::vector<Value> all = {ptb_.losses};
    all.insert(all.end(), ptb_.next_states.begin(), ptb_.next_states.end());
    return all;
  }
  // Returns word i of the sequence <eos>, the words of the line, <eos>, <eos>, …
  std::int32_t word_at(const TextLine& line, std::size_t i) const {
    return i >= 1 && i <= line.ids.size() ? line.ids[i - 1] : end_;
  }
  void add(std::span<const TextLine> lines, std::size_t first, std::vector<Tensor>& states,
           std::vector<Perplexity>& found) const {
    const auto words = std::size_t(words_);
    const Tensor inputs(DType::kInt32, {std::int64_t(lines.size()), words_});
    const Tensor targets(DType::kInt32, inputs.shape());
    for (std::size_t n = 0; n < lines.size(); ++n) {
      for (std::size_t t = 0; t < words; ++t) {
        inputs.data<std::int32_t>()[n * words + t] = word_at(lines[n], first + t);
        targets.data<std::int32_t>()[n * words + t] = word_at(lines[n], first + t + 1);
      }
    }
    std::vector<std::pair<Value, Tensor>> fed = {{ptb_.inputs, inputs}, {ptb_.targets, targets}};
    for (std::size_t i = 0; i < states.size(); ++i) fed.emplace_back(ptb_.states[i], states[i]);
    std::vector<Tensor> computed = predictor_.predict(fed);
    const std::span<const float> losses = computed[0].data<float>();
    for (std::size_t n = 0; n < lines.size(); ++n) {
      for (std::size_t t = 0; t < words && first + t <= lines[n].ids.size(); ++t) {
        found[n].add(double(losses[n * words + t]), 1);
      }
    }
    std::move(computed.begin() + 1, computed.end(), states.begin());
  }

  const std::int64_t words_;
  const std::int32_t end_;  // <eos>
  Graph graph_;
  const PtbLines ptb_;
  const Predictor predictor_;
};

/// Gives a row for each line of the text: the number of the line, from 1; the perplexity of its
/// words and of the <eos> at its end; the number of its words; and how many of these are read as
/// <unk>. The ids of words come from the checkpoint. Throws kFailedPrecondition when the checkpoint
/// does not tell its words, and kUsage when the text cannot be read.
void infer_lines(const InferenceRequest& request, const PtbConfig& config) {
  const Vocabulary vocabulary = vocabulary_of(request.saved);
  const std::vector<TextLine> lines = read_lines(vocabulary, request.data);
  const LineCosts costs(request.saved, config, vocabulary.id("<eos>"));
  for (std::size_t first = 0; first < lines.size(); first += std::size_t(kLines)) {
    const auto some =
        std::span(lines).subspan(first, std::min(lines.size() - first, std::size_t(kLines)));
    const std::vector<Perplexity> found = costs.of(some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      request.give({{"line", std::int64_t(first + i + 1)},
                    {"perplexity", found[i].value()},
                    {"words", std::int64_t(some[i].ids.size())},
                    {"unknown", some[i].unknown}});
    }
  }
}

/// One worker's pass over its part of the text, or over its blocks of a text that the job shares
/// out. The progress is printed about ten times.
class PtbEpoch {
 public:
  /// A step reads `batch` rows of `unroll` words. `steps` is the number of steps in the epoch; if
  /// workers share the text, all workers make them together.
  PtbEpoch(std::int64_t steps, std::int64_t batch, std::int64_t unroll)
      : steps_(steps),
        batch_(batch),
        unroll_(unroll),
        begun_(Clock::now()),
        next_line_(std::min<std::int64_t>(10, tenth() - 1)) {}

  /// Begins after the first `step` steps of the epoch, whose costs sum to `cost`. If `cost` is NaN,
  /// the sum is not known, and the perplexity covers only the steps from now on.
  void begin_at(std::int64_t step, double cost);
  std::int64_t steps_made() const { return made_; }
  double cost() const { return perplexity_.cost(); }
  /// True when the perplexity covers all steps of the epoch so far.
  bool knows_all() const { return perplexity_.time_steps() == made_ * unroll_; }

  /// True when no batch is left; else next_batch() returns the next one.
  bool at_end() const { return fed_ == steps_; }
  std::int64_t next_batch() { return fed_++; }
  /// Notes that the next batch is number `batch` of a text that is shared out.
  void feed_shared(std::int64_t batch) {
    shared_ = batch;
    ++fed_;
  }
  /// The number of batches that were fed.
  std::int64_t fed() const { return fed_; }
  /// Notes that the job has no more batches of this epoch for this worker.
  void end_shared() { ended_ = true; }
  /// The index, from 0, of the batch that was fed last from a text that is shared out.
  std::int64_t shared_batch() const { return shared_.value_or(0); }
  /// True when this worker has made all its steps of the epoch.
  bool whole() const { return ended_ || made_ == steps_; }

  /// Adds the cost of a step. Prints a line such as `0.104 perplexity: 853.3 speed: 11000 wps` when
  /// one is due.
  void add_step(Session& session, double cost);
  double perplexity() const { return perplexity_.value(); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(std::int64_t step) const;
  std::int64_t tenth() const { return std::max<std::int64_t>(steps_ / 10, 1); }

  std::int64_t steps_, batch_, unroll_;
  Clock::time_point begun_;
  std::int64_t fed_ = 0, made_ = 0;
  std::optional<std::int64_t> shared_;
  bool ended_ = false;
  std::int64_t next_line_;
  std::int64_t timed_from_ = 0;  // the time steps before this process began the epoch
  Perplexity perplexity_;
};

/// Trains ptb: epochs over this worker's part of the text, each followed by validation, and a test
/// at the end. Towers read equal parts of the worker's part side by side, each with its own LSTM
/// states. If the job shares out the text, the worker reads the blocks that it is given, and its
/// states begin anew with each block.
class PtbTraining {
 public:
  PtbTraining(const PtbConfig& config, const std::string& folder, const Cluster& cluster,
              const RunOptions& run);
  /// Trains for epochs until their number, --steps or --seconds is reached. An epoch that is cut
  /// short is not validated. Only if the run ends by its number of epochs does the chief make a
  /// test, after all workers have ended. A simulated device that computes nothing makes no test,
  /// since a test takes a step for each word.
  void run();

 private:
  /// The position at which training goes on: the beginning, the position of the checkpoint, or, for
  /// a worker that was restarted, the position that its own steps have reached.
  struct Begin {
    std::int64_t epoch = 0, step = 0;
    double cost = 0;  // the sum over the steps before; NaN: not known
    bool keep_state = false;
  };
  Begin begin();
  /// The position at which training goes on when the checkpoint was saved with another batch or
  /// unroll; nothing when it was saved with the same.
  std::optional<Begin> begin_of_other_batches();
  /// Throws kInvalidArgument unless the batches of the checkpoint have the size of those of this
  /// run.
  void check_same_batches() const;
  void tell_position(TaskPosition& position) const;
  /// Trains from `begin` to the end of the epoch. Returns false when training has ended for good.
  bool run_epoch(std::int64_t epoch, const Begin& begin);
  bool train();
  void say_epoch();
  /// Returns the next batch of the epoch that is under way; nothing at its end.
  std::optional<std::int64_t> next_batch(Feed& feed);
  std::optional<std::int64_t> next_shared_batch(Feed& feed);
  void report_training(const PtbEpoch& epoch);
  void validate(std::int64_t epoch);
  void test();
  /// Returns the perplexity of a text with the newest variables and states that begin at zero. A
  /// batch has `rows` rows of `time_steps` words.
  double evaluate(const TextBatches& batches, std::int64_t time_steps, std::int64_t rows);

  /// The number of rows in a step, of all towers together.
  std::int64_t rows() const { return config_.batch * std::int64_t(data_.train.size()); }
  /// The number of steps in an epoch.
  std::int64_t steps() const { return data_.train.front().size(); }

  PtbConfig config_;
  PtbData data_;
  bool by_epochs_;
  bool computes_;  // true: the device computes; false: it only takes the time
  int workers_;
  std::optional<SharedBatches> shared_;  // set if the job shares out the text
  float carry_ = 0;                      // the next step's PtbGraph::carry
  Graph graph_;
  PtbGraph ptb_;                   // for batches of any size
  std::optional<PtbEpoch> epoch_;  // the epoch under way, or the last one
  std::int64_t epoch_number_ = 0, next_epoch_ = 0;
  PerplexityEnds ends_;
  Session session_;  // declared last, since it calls tell_position() until it ends
};

void PtbEpoch::begin_at(std::int64_t step, double cost) {
  fed_ = made_ = std::min(step, steps_);
  while (next_line_ < made_) next_line_ += tenth();
  if (std::isnan(cost) || made_ == 0) return;
  perplexity_.add(cost, made_ * unroll_);
  timed_from_ = perplexity_.time_steps();
}

void PtbEpoch::add_step(Session& session, double cost) {
  perplexity_.add(cost, unroll_);
  // Lines are due as in the program of Zaremba et al.: at steps 10, 10 + a tenth of the epoch, …,
  // counted from 0.
  const std::int64_t made = made_++;
  const std::int64_t step = shared_.value_or(made);
  if (step < next_line_) return;
  while (next_line_ <= step) next_line_ += tenth();
  session.print(line(step));
}

std::string PtbEpoch::line(std::int64_t step) const {
  const double words = double((perplexity_.time_steps() - timed_from_) * batch_);
  return fmt::format("{:.3f} perplexity: {:.1f} speed: {:.0f} wps", double(step) / double(steps_),
                     perplexity_.value(), words / seconds());
}

constexpr std::chrono::seconds kProgressEvery{5};

// The size of blocks is a compromise. Long blocks are good, since states begin anew with each
// block. Short blocks are good, since at the end of an epoch others may wait for a slow worker's
// block.
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

PtbTraining::PtbTraining(const PtbConfig& config, const std::string& folder, const Cluster& cluster,
                         const RunOptions& run)
    : config_(config),
      data_(read_ptb(folder, config, cluster.task.index, cluster.workers(), cluster.towers,
                     cluster.shares_records())),
      by_epochs_(!run.steps && !run.seconds),
      computes_(computes(cluster.device)),
      workers_(cluster.workers()),
      ptb_(build_ptb(graph_, config, graph_.open("batch", config.batch),
                     graph_.open("time", config.unroll), true, cluster.shares_records())),
      session_(ptb_minimize(ptb_, config), cluster, run, session_options(config, data_, ends_)) {
  if (cluster.shares_records()) {
    shared_.emplace(steps(), block_of(steps(), workers_),
                    by_epochs_ ? std::optional(config.epochs) : std::nullopt);
  }
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

// A position counts batches. If batches have another size now, training goes on after the same
// number of words.
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

// If the text is shared out, the saved batch is that of one worker's share, so that a later run in
// which each worker has its own part of the text goes on after the same share of the text.
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
  if (!begin.keep_state) session_.reset_locals(graph_);
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

// Returns also batches of an earlier epoch, which a lost worker has left: they are read in this
// epoch.
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
    if (shared_) feed.data<float>(ptb_.carry)[0] = carry_;
    data_.train[tower].fill(batch, feed.data<std::int32_t>(ptb_.inputs),
                            feed.data<std::int32_t>(ptb_.targets));
  });
}

void PtbTraining::validate(std::int64_t epoch) {
  const double perplexity = evaluate(data_.valid, config_.unroll, config_.batch);
  session_.report("perplexity", "valid", perplexity);
  session_.summarise("perplexity/valid", perplexity);
  session_.print(fmt::format("Epoch: {} Valid Perplexity: {:.3f}", epoch + 1, perplexity));
}

void PtbTraining::test() {
  const double perplexity = evaluate(data_.test, 1, 1);
  session_.report("perplexity", "test", perplexity);
  session_.summarise("perplexity/test", perplexity);
  session_.print(fmt::format("Test Perplexity: {:.3f}", perplexity));
}

double PtbTraining::evaluate(const TextBatches& batches, std::int64_t time_steps,
                             std::int64_t rows) {
  Evaluator evaluator(session_, 0);
  evaluator.take_values();
  const Shape shape{time_steps, rows};
  Perplexity perplexity;
  for (std::int64_t batch = 0; batch < batches.size(); ++batch) {
    const auto cost = evaluator.evaluate_in_place(graph_, {&ptb_.cost, 1}, [&](Feed& feed) {
      if (ptb_.carry) feed.data<float>(ptb_.carry)[0] = 1;
      batches.fill(batch, feed.data<std::int32_t>(ptb_.inputs, shape),
                   feed.data<std::int32_t>(ptb_.targets, shape));
    });
    perplexity.add(*cost[0].as<float>(), time_steps);
  }
  return perplexity.value();
}

constexpr std::string_view kMakesOne = " (`paceline data corpus --out DIR --words N` makes one)";

void check_text(const std::string& folder) {
  if (folder.empty()) {
    throw Error(ErrorCode::kUsage,
                "--data is missing: a folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt" +
                    std::string(kMakesOne));
  }
  std::error_code unseen;  // a folder that may not be looked at counts as none
  if (!std::filesystem::is_directory(folder, unseen)) {
    throw Error(ErrorCode::kUsage,
                "--data " + folder + ": there is no such folder" + std::string(kMakesOne));
  }
  for (const char* file : {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"}) {
    if (std::filesystem::exists(std::filesystem::path(folder) / file, unseen)) continue;
    throw Error(ErrorCode::kUsage,
                "--data " + folder + ": it holds no " + file + std::string(kMakesOne));
  }
}

class PtbModel : public Model {
 public:
  PtbModel()
      : Model({.name = "ptb",
               .summary = "LSTM word language model on Penn Treebank's or generated text, SGD",
               .settings = ptb_settings()}) {}

  void check(const Cluster& cluster, const RunOptions& run,
             const Settings& settings) const override {
    const bool reads_text = cluster.task.role != TaskId::Role::kPs && !run.predicts;
    if (reads_text) check_text(settings[ptb_data_setting()]);
  }

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    check(cluster, run, settings);
    PtbTraining(ptb_config(settings), settings[ptb_data_setting()], cluster, run).run();
  }

  std::vector<std::string> numbers() const override {
    return {"perplexity/train", "perplexity/valid", "perplexity/test"};
  }

  std::optional<OnnxModel> onnx_model(const SavedShapes& saved) const override {
    const Shape& words = saved_shape(saved, "embedding");
    PtbConfig config;
    config.vocabulary = words[0];
    config.hidden = words[1];
    config.layers = 1;
    while (saved.contains(fmt::format("lstm{}/w", config.layers + 1))) ++config.layers;
    return OnnxModel{.open = {"time", "batch"}, .build = [config](auto sizes) {
                       return ptb_inference(config, sizes[0], sizes[1]);
                     }};
  }

  std::optional<Inference> inference() const override {
    return Inference{.about =
                         "Computes the perplexity of each line of a text, which begins and ends "
                         "with <eos>. Words that the run's text did not have are read as <unk>.",
                     .data = "The text: a file, a sentence on each line"};
  }

  void infer(const InferenceRequest& request, const Settings& settings) const override {
    infer_lines(request, ptb_config(settings));
  }

  std::vector<StepGraph> step_graphs(const Settings& settings) const override {
    const PtbConfig config = ptb_config(settings);
    auto graph = std::make_unique<Graph>();
    const PtbGraph ptb = build_ptb(*graph, config, config.batch, config.unroll, true);
    std::vector<StepGraph> steps;
    steps.push_back({"", std::move(graph), ptb_minimize(ptb, config)});
    return steps;
  }
};

}  // namespace

const Model& ptb_model() {
  static const PtbModel model;
  return model;
}

}  // namespace paceline::models
