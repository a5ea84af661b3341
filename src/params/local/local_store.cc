#include "params/local/local_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/machine_memory.h"
#include "checkpoint/checkpoint_save.h"
#include "paceline/error.h"
#include "params/shard/not_finite.h"
#include "params/shard/rule_label.h"
#include "params/shard/saved_variables.h"
#include "params/shard/variable_memory.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

class LocalStore;

class LocalHandle : public StepHandle {
 public:
  std::int64_t global_step() override { return step; }
  std::int64_t step = 0;
};

template <typename Apply>
void named(const std::string& task, std::int64_t own_step, Apply&& apply) {
  try {
    apply();
  } catch (const NotFinite& error) {
    throw error.of(task, own_step);
  }
}

// Applies the rule to each range of a contribution as soon as a kernel has computed that range.
class LocalSink : public OutputSink {
 public:
  LocalSink(Timeline* timeline, const std::string& task) : timeline_(timeline), task_(task) {}
  void begin(VariableMemory& held, const TimelineLabel* label, const UpdateScalars& scalars,
             std::int64_t own_step) {
    own_step_ = own_step;
    held_ = &held;
    label_ = label;
    step_ = held.begin_contribution(scalars);
  }
  void take(std::int64_t first, std::span<const float> values) override {
    const TimelineScope scope(timeline_, label_, std::int64_t(values.size_bytes()));
    named(task_, own_step_, [&] { held_->apply_range(step_, first, values); });
  }

 private:
  Timeline* const timeline_;
  const std::string& task_;
  const TimelineLabel* label_ = nullptr;
  VariableMemory* held_ = nullptr;
  RuleStep step_;
  std::int64_t own_step_ = 0;
};

class LocalSteps : public StoreSteps {
 public:
  LocalSteps(LocalStore& store, const PlanBinding& plan, bool clipped);
  void begin_step(StepKind kind, std::span<const RowSet> rows, const StepScalars& scalars) override;
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override;
  OutputSink& sink(VariableId variable) override;
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override;

 private:
  struct Ready {
    VariableId variable;
    Contribution contribution;
    Event event;
  };
  void apply(const Ready& ready, float clip_scale);

  LocalStore& store_;
  const bool clipped_;
  StepKind kind_ = StepKind::kTrain;
  std::int64_t own_step_ = 0;
  std::vector<float> learning_rates_;
  std::vector<Tensor> places_;  // by variable; undefined until a step asks for it
  std::vector<bool> updated_;   // by variable: the plan updates it
  // By variable: sink_ has already applied its contribution in this step.
  std::vector<bool> streamed_;
  LocalSink sink_;
  // With clipping: contributions that wait until end_step() brings the scale.
  std::vector<Ready> waiting_;
  LocalHandle handle_;
};

std::size_t bytes_with_slots(std::span<const VariableSpec> variables) {
  std::size_t bytes = 0;
  for (const VariableSpec& variable : variables) {
    bytes += std::size_t(variable.shape.elements()) * size_of(variable.dtype) *
             (1 + slots_of(variable).size());
  }
  return bytes;
}

class LocalStore : public SavableStore {
 public:
  LocalStore(std::vector<VariableSpec> specs, ThreadPool* pool, StepAccount* account,
             Timeline* timeline, OnNan on_nan, std::string task)
      : specs_(std::move(specs)),
        pool_(pool),
        account_(account),
        timeline_(timeline),
        on_nan_(on_nan),
        task_(std::move(task)) {
    check_fits_machine("[local store] the variables need", double(bytes_with_slots(specs_)));
    std::set<std::string> names;
    for (const VariableSpec& spec : specs_) {
      if (!names.insert(spec.name).second) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("[local store] two variables are named {}", spec.name));
      }
      variables_.emplace_back(spec);
      labels_.push_back(timeline == nullptr ? nullptr : timeline->label(rule_label(spec)));
    }
  }

  std::span<const VariableSpec> variables() const override { return specs_; }
  std::unique_ptr<StoreSteps> bind(const PlanBinding& plan, float clip_norm) override {
    return std::make_unique<LocalSteps>(*this, plan, clip_norm > 0);
  }
  void write(std::vector<VariableState> states, std::int64_t global_step) override {
    for (VariableState& state : states) {
      VariableMemory& memory = variable(state.variable);
      memory.write(std::move(state));
    }
    global_step_ = global_step;
  }
  bool takes_streams() const override { return true; }
  bool takes_lent() const override { return true; }
  bool move_value(VariableId id, std::span<std::byte> to) override {
    written(id).move_value(to);
    return true;
  }
  bool initialised() const override {
    return std::ranges::all_of(variables_, [](const VariableMemory& v) { return v.written(); });
  }
  std::vector<VariableState> read(std::span<const VariableId> variables) override {
    std::vector<VariableState> states;
    states.reserve(variables.size());
    for (const VariableId id : variables) states.push_back(written(id).read(id));
    return states;
  }
  std::int64_t global_step() const override { return global_step_; }

  std::vector<std::string> prepare_saving(const std::string&) override {
    for (VariableMemory& held : variables_) held.snapshot().make_room();
    return {};
  }
  void mark() override {
    for (VariableMemory& held : variables_) held.mark();
    marked_step_ = global_step_;
  }
  SavedShards write_shards(const std::string& folder) override;

  VariableMemory& variable(VariableId id) {
    if (id >= 0 && std::size_t(id) < variables_.size()) return variables_[std::size_t(id)];
    throw Error(ErrorCode::kNotFound,
                fmt::format("[local store] variable {} of {}", id, variables_.size()));
  }
  VariableMemory& written(VariableId id) {
    VariableMemory& held = variable(id);
    if (held.written()) return held;
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("[local store] {} is read before it was written", held.spec().name));
  }
  void count_step() { ++global_step_; }
  void count_skipped() { ++skipped_; }
  std::int64_t skipped() const override { return skipped_; }
  const std::string& task() const { return task_; }
  bool must_be_finite() const { return on_nan_ == OnNan::kStop; }
  ThreadPool* pool() const { return pool_; }
  StepAccount* step_account() { return account_; }
  Timeline* timeline() const { return timeline_; }
  /// Returns the timeline's label for applying the variable's rule.
  const TimelineLabel* label(VariableId id) const { return labels_[std::size_t(id)]; }

 private:
  std::vector<VariableSpec> specs_;
  std::deque<VariableMemory> variables_;
  std::int64_t global_step_ = 0, marked_step_ = 0;
  ThreadPool* pool_;
  StepAccount* account_;
  Timeline* timeline_;
  const OnNan on_nan_;
  const std::string task_;  // the name in errors
  std::int64_t skipped_ = 0;
  std::vector<const TimelineLabel*> labels_;  // by variable; null without a timeline
};

SavedShards LocalStore::write_shards(const std::string& folder) {
  const std::vector<Piece> pieces = place_variables(specs_, 1);
  SavedShards saved{.global_step = marked_step_,
                    .files = {},
                    .variables = saved_variables(specs_, pieces, 1),
                    .others = {}};
  const auto read = [this](const Piece& piece, std::size_t array, std::size_t offset,
                           std::size_t bytes) {
    return variables_[std::size_t(piece.variable)].read_marked(array, offset, bytes);
  };
  saved.files.push_back(write_shard(folder + "/" + shard_name(0, 1), specs_, pieces, 0, 1, read));
  for (VariableMemory& held : variables_) held.snapshot().drop();
  return saved;
}

LocalSteps::LocalSteps(LocalStore& store, const PlanBinding& plan, bool clipped)
    : store_(store), clipped_(clipped), sink_(store.timeline(), store.task()) {
  const std::span<const VariableSpec> specs = store.variables();
  learning_rates_.resize(specs.size());
  places_.resize(specs.size());
  streamed_.resize(specs.size());
  updated_.resize(specs.size());
  for (const PlanBinding::Use& use : plan.uses) {
    const VariableSpec& spec = store.variable(use.variable).spec();
    if (!use.updated) continue;
    if (!spec.trained) {
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("[local store] the plan updates {}, which is not trained", spec.name));
    }
    updated_[std::size_t(use.variable)] = true;
    if (use.streamed) continue;
    places_[std::size_t(use.variable)] =
        Tensor(spec.dtype, contribution_shape(spec, use.most_rows));
  }
  waiting_.reserve(plan.uses.size());
}

void LocalSteps::begin_step(StepKind kind, std::span<const RowSet>, const StepScalars& scalars) {
  kind_ = kind;
  own_step_ = scalars.step;
  waiting_.clear();
  std::fill(streamed_.begin(), streamed_.end(), false);
  if (kind != StepKind::kTrain) return;
  if (scalars.learning_rates.size() != learning_rates_.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[local store] {} learning rates for {} variables",
                            scalars.learning_rates.size(), learning_rates_.size()));
  }
  std::ranges::copy(scalars.learning_rates, learning_rates_.begin());
}

AsyncView LocalSteps::need(VariableId variable) { return store_.written(variable).view(); }

AsyncView LocalSteps::place(VariableId variable) {
  Tensor& place = places_.at(std::size_t(variable));
  streamed_[std::size_t(variable)] = false;
  const VariableSpec& spec = store_.variable(variable).spec();
  if (!place.defined() && updated_[std::size_t(variable)]) place = Tensor(spec.dtype, spec.shape);
  if (place.defined()) return place.view();
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[local store] the plan did not say that it updates {}", spec.name));
}

OutputSink& LocalSteps::sink(VariableId variable) {
  streamed_[std::size_t(variable)] = true;
  sink_.begin(store_.written(variable), store_.label(variable),
              {learning_rates_[std::size_t(variable)], 1, store_.must_be_finite()}, own_step_);
  return sink_;
}

void LocalSteps::ready(VariableId variable, const Contribution& contribution, const Event& event) {
  if (streamed_[std::size_t(variable)]) return;
  if (clipped_) {
    waiting_.push_back({variable, contribution, event});
  } else {
    apply({variable, contribution, event}, 1);
  }
}

void LocalSteps::apply(const Ready& ready, float clip_scale) {
  wait_on_host(ready.event);
  std::optional<AccountScope> scope;
  if (store_.step_account() != nullptr) scope.emplace(*store_.step_account(), Activity::kApply);
  const TimelineScope event(store_.timeline(), store_.label(ready.variable));
  VariableMemory& held = store_.written(ready.variable);
  const UpdateScalars scalars{learning_rates_[std::size_t(ready.variable)], clip_scale,
                              store_.must_be_finite()};
  const float* gradient = ready.contribution.lent;
  if (gradient == nullptr) gradient = places_[std::size_t(ready.variable)].view().as<float>();
  named(store_.task(), own_step_, [&] {
    if (ready.contribution.sparse) {
      held.apply_rows(scalars, ready.contribution.ids, gradient, store_.pool());
    } else {
      held.apply(scalars, gradient, store_.pool());
    }
  });
}

StepHandle& LocalSteps::end_step(float clip_scale, std::span<const RowSet>) {
  if (is_skipped(clip_scale)) {
    store_.count_skipped();
    waiting_.clear();
  }
  for (const Ready& ready : waiting_) apply(ready, clip_scale);
  waiting_.clear();
  if (kind_ == StepKind::kTrain) store_.count_step();
  handle_.step = store_.global_step();
  return handle_;
}

}  // namespace

std::unique_ptr<SavableStore> make_local_store(std::vector<VariableSpec> variables,
                                               ThreadPool* pool, StepAccount* account,
                                               Timeline* timeline, OnNan on_nan,
                                               const std::string& task) {
  return std::make_unique<LocalStore>(std::move(variables), pool, account, timeline, on_nan, task);
}

}  // namespace paceline
