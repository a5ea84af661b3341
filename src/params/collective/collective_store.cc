// Every worker applies the rule to the whole of each variable. If the workers divided that work,
// each would hold only a part of the values and slots, and a worker that died would take its part
// with it.
#include "params/collective/collective_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/copy_bytes.h"
#include "checkpoint/checkpoint_save.h"
#include "exec/parameter_store.h"
#include "params/collective/collective_driver.h"
#include "params/shard/contribution_mean.h"
#include "params/shard/not_finite.h"
#include "params/shard/saved_variables.h"
#include "params/variable_arrays.h"
#include "params/weighted_sum.h"

namespace paceline {
namespace {

// The steps of one plan on a store of an all-reduce.

/// Every worker applies the rule to all of each variable, from the same sums.
class CollectiveSteps : public StoreSteps, private SumExchange {
 public:
  /// Counts in `skipped` the steps that were left out because of NaN. Throws kInvalidArgument when
  /// the plan updates a variable that is not trained.
  CollectiveSteps(CollectiveDriver& driver, HeldVariables& variables,
                  const CollectiveOptions& options, const ContributionLayout& layout,
                  const PlanBinding& plan, float clip_norm, std::int64_t& skipped);

  NormBy norm_by() const override { return NormBy::kStore; }
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override;
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  SumExchange* exchange() override { return options_.sync_batch_norm ? this : nullptr; }
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  struct Handle : public StepHandle {
    explicit Handle(CollectiveSteps& of) : steps(of) {}
    std::int64_t global_step() override;
    CollectiveSteps& steps;
    std::int64_t step = 0;
  };

  void add_up(std::span<double> sums) override;
  void take_rows(VariableId variable, const Contribution& contribution);
  void apply_or_fail();
  void apply();
  void check_own() const;
  bool must_be_finite() const { return options_.on_nan == OnNan::kStop; }
  float clip_scale();
  double squares_of_bucket(std::size_t bucket);
  void apply_dense(std::size_t bucket, float clip_scale);
  void apply_whole(VariableMemory& memory, const UpdateScalars& scalars, std::size_t first);
  void apply_rows(std::size_t bucket, float clip_scale);
  std::size_t place_in(const Bucket& bucket, VariableId variable) const {
    return (layout_.offset(variable) - bucket.offset) / sizeof(float);
  }
  ThreadPool& pool() { return options_.pool != nullptr ? *options_.pool : alone_; }

  CollectiveDriver& driver_;
  HeldVariables& variables_;
  const CollectiveOptions& options_;
  const ContributionLayout& layout_;
  const float clip_norm_;
  std::int64_t& skipped_;
  std::int64_t own_step_ = 0;
  const std::shared_ptr<const std::vector<Bucket>> buckets_;
  std::vector<std::size_t> bucket_of_;   // by variable
  std::vector<std::int64_t> most_rows_;  // by variable
  // By variable: memory for a contribution with more rows than the layout has space for.
  std::vector<Tensor> own_places_;
  std::vector<std::size_t> not_ready_;  // by bucket: how many variables are not ready
  std::vector<std::size_t> rows_;       // by bucket
  std::vector<float> learning_rates_;
  std::vector<SumPart> parts_;  // kept to reuse its memory, as are the members below
  std::vector<double> block_squares_;
  std::vector<float> whole_;
  ThreadPool alone_{1};
  StepKind kind_ = StepKind::kTrain;
  Handle handle_{*this};
};

constexpr std::size_t kNoBucket = ~std::size_t{0};
// Squares are summed in blocks of this many numbers, so the sum does not depend on the number of
// threads.
constexpr std::size_t kNormBlock = 64 * 1024;

CollectiveSteps::CollectiveSteps(CollectiveDriver& driver, HeldVariables& variables,
                                 const CollectiveOptions& options, const ContributionLayout& layout,
                                 const PlanBinding& plan, float clip_norm, std::int64_t& skipped)
    : driver_(driver),
      variables_(variables),
      options_(options),
      layout_(layout),
      clip_norm_(clip_norm),
      skipped_(skipped),
      buckets_(
          std::make_shared<const std::vector<Bucket>>(buckets_of(variables.specs(), layout, plan))),
      bucket_of_(variables.specs().size(), kNoBucket),
      most_rows_(variables.specs().size()),
      own_places_(variables.specs().size()),
      not_ready_(buckets_->size()),
      rows_(buckets_->size()),
      learning_rates_(variables.specs().size()) {
  for (std::size_t b = 0; b < buckets_->size(); ++b) {
    for (const VariableId variable : (*buckets_)[b].variables)
      bucket_of_[std::size_t(variable)] = b;
  }
  for (const PlanBinding::Use& use : plan.uses) {
    const VariableSpec& spec = variables.at(use.variable).spec();
    if (!use.updated) continue;
    if (!spec.trained) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[all-reduce] the plan updates {}, which is not trained", spec.name));
    }
    if (!spec.sparse) continue;
    most_rows_[std::size_t(use.variable)] = use.most_rows;
    if (use.most_rows > spec.shape[0]) {
      own_places_[std::size_t(use.variable)] =
          Tensor(spec.dtype, contribution_shape(spec, use.most_rows));
    }
  }
}

void CollectiveSteps::begin_step(StepKind kind, std::span<const RowSet>,
                                 const StepScalars& scalars) {
  kind_ = kind;
  if (kind != StepKind::kTrain) return;
  own_step_ = scalars.step;
  if (scalars.learning_rates.size() != learning_rates_.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[all-reduce] {} learning rates for {} variables",
                            scalars.learning_rates.size(), learning_rates_.size()));
  }
  std::ranges::copy(scalars.learning_rates, learning_rates_.begin());
  for (std::size_t b = 0; b < buckets_->size(); ++b) {
    not_ready_[b] = (*buckets_)[b].variables.size();
  }
  {
    std::optional<AccountScope> scope;
    if (options_.account != nullptr) scope.emplace(*options_.account, Activity::kWait);
    driver_.begin_step(buckets_, scalars.examples);
  }
  if (options_.rounds == nullptr) return;
  options_.rounds->begin(driver_.begun_step());
  driver_.confirm_counted(driver_.begun_step());
}

AsyncView CollectiveSteps::need(VariableId variable) {
  if (driver_.had_values()) return variables_.at(variable).view();
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[all-reduce] {} is read before it was written",
                          variables_.at(variable).spec().name));
}

AsyncView CollectiveSteps::place(VariableId variable) {
  const VariableSpec& spec = variables_.at(variable).spec();
  const auto v = std::size_t(variable);
  if (bucket_of_[v] == kNoBucket) {
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[all-reduce] the plan did not say that it updates {}", spec.name));
  }
  if (own_places_[v].defined()) return own_places_[v].view();
  return TensorView{driver_.collectives().memory().data() + layout_.offset(variable), spec.dtype,
                    contribution_shape(spec, most_rows_[v])};
}

void CollectiveSteps::ready(VariableId variable, const Contribution& contribution,
                            const Event& event) {
  wait_on_host(event);
  const std::size_t bucket = bucket_of_[std::size_t(variable)];
  if ((*buckets_)[bucket].sparse) take_rows(variable, contribution);
  if (--not_ready_[bucket] == 0) driver_.collectives().contribute(bucket, rows_[bucket]);
}

void CollectiveSteps::take_rows(VariableId variable, const Contribution& contribution) {
  const VariableSpec& spec = variables_.at(variable).spec();
  const std::span<const std::int32_t> ids = contribution.ids;
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < spec.shape[0]) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[variable {}] row {} of a contribution is outside [0,{})", spec.name,
                            id, spec.shape[0]));
  }
  std::byte* const memory = driver_.collectives().memory().data();
  copy_bytes(memory + layout_.ids_offset(variable), ids.data(), ids.size_bytes());
  rows_[bucket_of_[std::size_t(variable)]] = ids.size();
  const Tensor& own = own_places_[std::size_t(variable)];
  if (!own.defined()) return;
  copy_bytes(memory + layout_.offset(variable), own.raw(), ids.size() * row_bytes(spec));
}

void CollectiveSteps::add_up(std::span<double> sums) {
  std::optional<AccountScope> scope;
  if (options_.account != nullptr) scope.emplace(*options_.account, Activity::kWait);
  driver_.add_up(sums);
}

StepHandle& CollectiveSteps::end_step(float, std::span<const RowSet>) {
  if (kind_ == StepKind::kTrain) {
    bool committed = false;
    {
      std::optional<AccountScope> scope;
      if (options_.account != nullptr) scope.emplace(*options_.account, Activity::kWait);
      if (options_.rounds != nullptr) {
        options_.rounds->wait_given();
        driver_.confirm_given();
      }
      committed = driver_.wait_committed();
    }
    if (committed) {
      apply_or_fail();
    } else if (options_.rounds != nullptr) {
      options_.rounds->lose(driver_.step());
    }
    driver_.set_applied();
  }
  handle_.step = driver_.step();
  return handle_;
}

std::int64_t CollectiveSteps::Handle::global_step() {
  if (steps.options_.rounds != nullptr) {
    steps.options_.rounds->wait_closed();
    steps.driver_.confirm_counted(step);
  }
  return step;
}

void CollectiveSteps::apply() {
  std::optional<AccountScope> scope;
  if (options_.account != nullptr) scope.emplace(*options_.account, Activity::kApply);
  const float scale = clip_scale();
  const std::unique_lock values = driver_.change_values();
  if (is_skipped(scale)) {
    ++skipped_;
    return;
  }
  for (std::size_t b = 0; b < buckets_->size(); ++b) {
    if ((*buckets_)[b].sparse) {
      apply_rows(b, scale);
    } else {
      apply_dense(b, scale);
    }
  }
}

// All workers find NaN or infinity in the same sums. But only the worker whose contribution has the
// NaN or infinity knows that, and it tells the others.
void CollectiveSteps::apply_or_fail() {
  try {
    apply();
  } catch (const NotFinite& of_mean) {
    try {
      check_own();
    } catch (const NotFinite& own) {
      driver_.end_job(own.of(options_.task.str(), own_step_));
    }
    driver_.wait_job_end(
        fmt::format("the mean of all contributions to {} in global step {} has "
                    "NaN or infinity",
                    of_mean.variable(), driver_.step()));
  }
}

void CollectiveSteps::check_own() const {
  const std::byte* const memory = driver_.collectives().memory().data();
  for (std::size_t b = 0; b < buckets_->size(); ++b) {
    for (const VariableId variable : (*buckets_)[b].variables) {
      const VariableSpec& spec = variables_.at(variable).spec();
      const auto* const values = reinterpret_cast<const float*>(memory + layout_.offset(variable));
      if ((*buckets_)[b].sparse) {
        const auto* const ids =
            reinterpret_cast<const std::int32_t*>(memory + layout_.ids_offset(variable));
        check_rows_finite(spec.name, {ids, rows_[b]}, row_elements(spec), values);
      } else {
        check_finite(spec.name, 0, {values, std::size_t(spec.shape.elements())});
      }
    }
  }
}

// Returns the clip scale that follows from the norm of the mean, the same bits on every worker; or
// kSkipContribution if the workers skip the step.
float CollectiveSteps::clip_scale() {
  double squares = 0;
  if (clip_norm_ > 0) {
    for (std::size_t b = 0; b < buckets_->size(); ++b) squares += squares_of_bucket(b);
  }
  if (options_.rounds != nullptr) {
    return options_.rounds->commit(driver_.contributors(),
                                   clip_norm_ > 0 ? std::optional(squares) : std::nullopt);
  }
  if (clip_norm_ <= 0) return 1;
  const double norm = float(std::sqrt(squares));
  if (options_.on_nan == OnNan::kSkip && !std::isfinite(norm)) return kSkipContribution;
  return norm > clip_norm_ ? float(clip_norm_ / norm) : 1.0f;
}

double CollectiveSteps::squares_of_bucket(std::size_t b) {
  const Bucket& bucket = (*buckets_)[b];
  parts_.clear();
  if (bucket.sparse) {
    parts_.push_back({0, driver_.collectives().row_sums_of(b).rows});
  } else {
    driver_.collectives().sum_of(b, parts_);
  }
  double sum = 0;
  for (const VariableId variable : bucket.variables) {
    const VariableSpec& spec = variables_.at(variable).spec();
    if (!spec.rule.takes_gradient()) continue;
    const std::size_t begin = bucket.sparse ? 0 : place_in(bucket, variable);
    const std::size_t end =
        bucket.sparse ? parts_[0].values.size() : begin + std::size_t(spec.shape.elements());
    for (const SumPart& part : parts_) {
      const std::size_t first = std::max(begin, part.first);
      const std::size_t last = std::min(end, part.first + part.values.size());
      if (first >= last) continue;
      const auto numbers = part.values.subspan(first - part.first, last - first);
      const std::size_t blocks = (numbers.size() + kNormBlock - 1) / kNormBlock;
      block_squares_.assign(blocks, 0);
      pool().parallel_for(std::int64_t(blocks), 1, [&](std::int64_t from, std::int64_t to) {
        for (auto i = std::size_t(from); i < std::size_t(to); ++i) {
          const std::size_t at = i * kNormBlock;
          block_squares_[i] =
              sum_of_squares(numbers.subspan(at, std::min(kNormBlock, numbers.size() - at)));
        }
      });
      for (const double squares : block_squares_) sum += squares;
    }
  }
  return sum;
}

void CollectiveSteps::apply_dense(std::size_t b, float clip_scale) {
  const Bucket& bucket = (*buckets_)[b];
  driver_.collectives().sum_of(b, parts_);
  for (const VariableId variable : bucket.variables) {
    VariableMemory& memory = variables_.at(variable);
    const UpdateScalars scalars{learning_rates_[std::size_t(variable)], clip_scale,
                                must_be_finite()};
    const std::size_t begin = place_in(bucket, variable);
    const std::size_t end = begin + std::size_t(memory.spec().shape.elements());
    if (memory.spec().rule.whole()) {
      apply_whole(memory, scalars, begin);
      continue;
    }
    const RuleStep step = memory.begin_contribution(scalars);
    for (const SumPart& part : parts_) {
      const std::size_t first = std::max(begin, part.first);
      const std::size_t last = std::min(end, part.first + part.values.size());
      if (first >= last) continue;
      const float* const numbers = part.values.data() + (first - part.first);
      pool().parallel_for(std::int64_t(last - first), kNumbersGrain,
                          [&](std::int64_t from, std::int64_t to) {
                            memory.apply_range(step, std::int64_t(first - begin) + from,
                                               {numbers + from, std::size_t(to - from)});
                          });
    }
  }
}

// A rule that asks for its whole variable needs the sum in one piece.
void CollectiveSteps::apply_whole(VariableMemory& memory, const UpdateScalars& scalars,
                                  std::size_t first) {
  const auto elements = std::size_t(memory.spec().shape.elements());
  whole_.resize(elements);
  for (const SumPart& part : parts_) {
    const std::size_t from = std::max(first, part.first);
    const std::size_t to = std::min(first + elements, part.first + part.values.size());
    if (from >= to) continue;
    copy_bytes(whole_.data() + (from - first), part.values.data() + (from - part.first),
               (to - from) * sizeof(float));
  }
  memory.apply(scalars, whole_.data(), &pool());
}

void CollectiveSteps::apply_rows(std::size_t b, float clip_scale) {
  const VariableId variable = (*buckets_)[b].variables.front();
  const RowSums sums = driver_.collectives().row_sums_of(b);
  variables_.at(variable).apply_rows(
      {learning_rates_[std::size_t(variable)], clip_scale, must_be_finite()}, sums.ids,
      sums.rows.data(), &pool());
}

// How long a worker that saves waits for the states of the other workers. A worker tells its state
// only between two steps, and a step may be long.
constexpr Duration kStatesWithin = std::chrono::seconds(10);
constexpr Duration kStatesOfInterrupted = std::chrono::milliseconds(500);

class CollectiveStoreImpl : public CollectiveStore {
 public:
  CollectiveStoreImpl(const CollectiveOptions& options, std::vector<VariableSpec> variables)
      : options_(options),
        variables_(std::move(variables)),
        layout_(variables_.specs()),
        driver_(options_, variables_) {
    driver_.join();
    was_initialised_ = !driver_.founded();  // worker 0 alone founds a group
  }

  std::span<const VariableSpec> variables() const override { return variables_.specs(); }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    return std::make_unique<CollectiveSteps>(driver_, variables_, options_, layout_, plan,
                                             clip_norm, skipped_);
  }
  void write(std::vector<VariableState> states, std::int64_t global_step) override;
  bool initialised() const override { return driver_.has_values(); }
  std::vector<VariableState> read(std::span<const VariableId> variables) override;
  std::int64_t global_step() const override { return driver_.step(); }
  std::int64_t skipped() const override { return skipped_; }
  StoreAccount account() const override { return driver_.account(); }
  std::vector<StoreLink> links() const override { return driver_.links(); }

  bool all_warm() const override { return driver_.all_warm(); }
  void set_done() override { driver_.set_done(); }
  bool wait_all_done(Deadline deadline) override { return driver_.wait_all_retired(deadline); }
  bool all_done() const override { return driver_.all_done(); }
  bool any_done() const override { return driver_.any_done(); }
  void end_training() override { driver_.end_training(); }
  bool training_ended() const override { return driver_.training_ended(); }
  void goodbye() override { driver_.goodbye(); }

  bool was_initialised() const override { return was_initialised_; }
  std::vector<std::int32_t> unreached() const override { return driver_.unreached(); }
  void wait_initialised() override { driver_.wait_values(); }
  void restore(std::span<const TaskState> states) override {
    restored_.assign(states.begin(), states.end());
  }
  std::int64_t next_step() const override { return driver_.next_own_step(); }
  std::optional<TaskState> restored() const override { return driver_.restored(); }
  bool state_asked() const override { return driver_.state_asked() != 0; }
  bool others_save() const override { return true; }
  void send_state(const TaskState& state) override { driver_.send_state(state); }
  void ask_progress() override { driver_.ask_progress(); }
  bool stop_asked() const override { return false; }
  std::shared_ptr<SharedRecordBlocks> records() const override { return driver_.records(); }
  bool takes_over_saving() const override { return driver_.saves(); }
  bool any_worker_saves() const override { return options_.rounds == nullptr; }
  EndSave wait_end_save(Deadline deadline, bool patient) override {
    return driver_.wait_end_save(deadline, patient);
  }
  void set_saved() override { driver_.set_saved(); }

  std::vector<std::string> prepare_saving(const std::string&) override {
    for (VariableMemory& held : variables_.all()) held.snapshot().make_room();
    return {};
  }
  void mark() override;
  SavedShards write_shards(const std::string& folder) override;

 private:
  const CollectiveOptions options_;
  HeldVariables variables_;
  const ContributionLayout layout_;
  std::vector<TaskState> restored_;
  bool was_initialised_ = false;
  std::int64_t marked_step_ = 0, skipped_ = 0;
  std::optional<RecordSet> marked_unused_;
  CollectiveDriver driver_;
};

void CollectiveStoreImpl::write(std::vector<VariableState> states, std::int64_t global_step) {
  driver_.use_values();
  {
    const std::unique_lock values = driver_.change_values();
    for (VariableState& state : states) {
      VariableMemory& memory = variables_.at(state.variable);
      memory.write(std::move(state));
    }
  }
  driver_.initialise(global_step, restored_);
}

std::vector<VariableState> CollectiveStoreImpl::read(std::span<const VariableId> variables) {
  driver_.wait_values();
  std::vector<VariableState> states;
  states.reserve(variables.size());
  for (const VariableId id : variables) states.push_back(variables_.at(id).read(id));
  return states;
}

void CollectiveStoreImpl::mark() {
  driver_.use_values();
  for (VariableMemory& held : variables_.all()) held.mark();
  marked_step_ = driver_.step();
  if (driver_.records()) marked_unused_ = driver_.unused_records();
  if (options_.rounds == nullptr) driver_.ask_states();  // with rounds, ps 0 asks them
}

SavedShards CollectiveStoreImpl::write_shards(const std::string& folder) {
  const std::span<const VariableSpec> specs = variables_.specs();
  // This worker's shard has the number after those of the ps tasks.
  const int shard = int(options_.spec.ps.size()), shards = shard + 1;
  std::vector<Piece> pieces = place_variables(specs, 1);
  for (Piece& piece : pieces) piece.ps = shard;
  SavedShards saved{.global_step = marked_step_,
                    .files = {},
                    .variables = saved_variables(specs, pieces, shards),
                    .others = {}};
  const auto read = [this](const Piece& piece, std::size_t array, std::size_t offset,
                           std::size_t bytes) {
    return variables_.at(piece.variable).read_marked(array, offset, bytes);
  };
  saved.unused = marked_unused_;
  saved.files.push_back(
      write_shard(folder + "/" + shard_name(shard, shards), specs, pieces, shard, shards, read));
  for (VariableMemory& held : variables_.all()) held.snapshot().drop();
  if (options_.rounds != nullptr) return saved;
  std::set<int> silent;
  const Duration within = driver_.left_step() ? kStatesOfInterrupted : kStatesWithin;
  saved.others = driver_.inbox().wait(Deadline::after(within), silent);
  for (const int worker : silent) {
    saved.lines.push_back(fmt::format(
        "the checkpoint of step {} has an older state of worker:{}, or none: it has not told it "
        "within {} s",
        marked_step_, worker, std::chrono::duration<double>(within).count()));
  }
  return saved;
}

}  // namespace

std::unique_ptr<CollectiveStore> CollectiveStore::join(const CollectiveOptions& options,
                                                       std::vector<VariableSpec> variables) {
  return std::make_unique<CollectiveStoreImpl>(options, std::move(variables));
}

}  // namespace paceline
