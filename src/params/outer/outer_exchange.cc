#include "params/outer/outer_exchange.h"

#include <utility>

#include "base/copy_bytes.h"

namespace paceline {
namespace {

constexpr std::int64_t kExchangeGrain = 1 << 14;  // elements

// Each common value is read twice in a step, and both reads must agree (`reread`).
PlanBinding plan_of(std::span<const VariableId> variables) {
  PlanBinding plan;
  for (const VariableId variable : variables) {
    plan.uses.push_back({.variable = variable, .updated = true, .reread = true});
  }
  return plan;
}

}  // namespace

OuterExchange::OuterExchange(ParameterStore& below, const OuterSchedule& schedule,
                             std::optional<std::int64_t> contributed, std::vector<TensorView> local,
                             std::vector<float> rates, ThreadPool* pool, StepAccount* account)
    : below_(below),
      schedule_(schedule),
      local_(std::move(local)),
      rates_(std::move(rates)),
      pool_(pool),
      account_(account),
      base_(local_.size()),
      turns_(schedule, below.global_step(), contributed) {
  for (int fragment = 0; fragment < schedule.fragments(); ++fragment) {
    steps_.push_back(below.bind(plan_of(schedule.variables_of(fragment)), 0));
    for (const VariableId variable : schedule.variables_of(fragment)) {
      const TensorView& from = local_[std::size_t(variable)];
      Tensor& base = base_[std::size_t(variable)] = Tensor(from.dtype, from.shape);
      copy_bytes(base.raw(), from.data, base.bytes());
    }
  }
}

template <typename Element>
void OuterExchange::for_elements(VariableId variable, Element&& element) {
  std::optional<AccountScope> scope;
  if (account_ != nullptr) scope.emplace(*account_, Activity::kApply);
  const auto range = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) element(i);
  };
  const std::int64_t elements = local_[std::size_t(variable)].shape.elements();
  if (pool_ == nullptr) return range(0, elements);
  pool_->parallel_for(elements, kExchangeGrain, range);
}

void OuterExchange::step_made(std::int64_t examples) {
  examples_ += examples;
  turns_.step_made();
  while (const auto act = turns_.next()) {
    switch (act->kind) {
      case OuterTurns::Act::Kind::kSettle:
        settle();
        break;
      case OuterTurns::Act::Kind::kTakeOver:
        take_over(act->fragment);
        break;
      case OuterTurns::Act::Kind::kContribute:
        contribute(act->fragment);
        break;
    }
  }
}

void OuterExchange::settle() {
  if (turns_.unsettled()) turns_.settled(sent_->global_step());
}

void OuterExchange::contribute(int fragment) {
  StoreSteps& steps = *steps_[std::size_t(fragment)];
  steps.begin_step(StepKind::kTrain, {},
                   {.learning_rates = rates_, .examples = examples_, .step = step_++});
  for (const VariableId variable : schedule_.variables_of(fragment)) {
    const AsyncView place = steps.place(variable);
    place.event.synchronize();
    float* const difference = place.view.as<float>();
    float* const base = base_[std::size_t(variable)].data<float>().data();
    const float* const local = local_[std::size_t(variable)].as<float>();
    for_elements(variable, [=](std::int64_t i) {
      difference[i] = base[i] - local[i];
      base[i] = local[i];
    });
    steps.ready(variable, {}, {});
  }
  sent_ = &steps.end_step(1, {});
  examples_ = 0;
  turns_.contributed();
}

// Takes over the new common value, and adds the change that the copy has made since the worker sent
// its difference. If there was no step since then, the copy becomes the common value.
void OuterExchange::take_over(int fragment) {
  for (const VariableId variable : schedule_.variables_of(fragment)) {
    AsyncView come;
    {
      std::optional<AccountScope> scope;
      if (account_ != nullptr) scope.emplace(*account_, Activity::kPull);
      come = steps_[std::size_t(fragment)]->need(variable);
      come.event.synchronize();
    }
    const float* const common = come.view.as<float>();
    float* const base = base_[std::size_t(variable)].data<float>().data();
    float* const local = local_[std::size_t(variable)].as<float>();
    for_elements(variable, [=](std::int64_t i) {
      local[i] = common[i] + (local[i] - base[i]);
      base[i] = common[i];
    });
  }
  turns_.took_over(fragment);
}

}  // namespace paceline
