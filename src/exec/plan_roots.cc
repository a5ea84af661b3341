#include "exec/plan_roots.h"

#include <fmt/format.h>

#include "base/check.h"
#include "paceline/error.h"

namespace paceline {
namespace {

[[noreturn]] void refuse(const std::string& variable, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("[plan] variable {}: {}", variable, why));
}

PlannedUpdate planned(const VariableUpdate& update, const VariableIds& variables) {
  PlannedUpdate planned;
  planned.variable = variables.of(update.variable.node());
  const VariableSpec& spec = variables.specs()[std::size_t(planned.variable)];
  if (update.contribution.sparse() != spec.sparse) {
    refuse(spec.name, spec.sparse ? "updated by rows elsewhere, as a whole here"
                                  : "updated as a whole elsewhere, by rows here");
  }
  if (!update.contribution.sparse()) {
    planned.dense = update.contribution.dense;
    if (planned.dense.type() != update.variable.type()) {
      refuse(spec.name, fmt::format("contribution is {}, not {}", planned.dense.type().str(),
                                    update.variable.type().str()));
    }
    return planned;
  }
  planned.ids = update.contribution.ids;
  planned.rows = update.contribution.rows;
  planned.count = update.row_count;
  if (!planned.count) refuse(spec.name, "rows are contributed without their count");
  return planned;
}

}  // namespace

VariableIds::VariableIds(std::span<const VariableSpec> specs) : specs_(specs) {
  for (std::size_t i = 0; i < specs.size(); ++i) by_name_.emplace(specs[i].name, VariableId(i));
}

VariableId VariableIds::of(const Node& variable) const {
  const auto found = by_name_.find(variable.name());
  if (found == by_name_.end()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("[plan] the store has no variable {}", variable.name()));
  }
  const VariableSpec& spec = specs_[std::size_t(found->second)];
  const ValueType known{spec.dtype, spec.shape};
  const ValueType& type = variable.outputs()[0];
  if (type != known) {
    refuse(spec.name, fmt::format("{} in this graph, {} in the store", type.str(), known.str()));
  }
  return found->second;
}

PlanRoots PlanRoots::of(const PlanRequest& request, const VariableIds& variables) {
  PlanRoots roots;
  roots.fetches = request.fetches;
  if (request.training == nullptr) return roots;
  const Training& training = *request.training;
  roots.loss = training.loss;
  if (training.clip_norm > 0 || training.skip_not_finite) roots.global_norm = training.global_norm;
  for (const VariableUpdate& update : training.updates) {
    if (update.contribution) roots.updates.push_back(planned(update, variables));
  }
  return roots;
}

std::vector<Value> PlanRoots::values() const {
  std::vector<Value> values = fetches;
  if (loss) values.push_back(loss);
  if (global_norm) values.push_back(global_norm);
  for (const PlannedUpdate& update : updates) {
    if (update.sparse()) {
      values.insert(values.end(), {update.ids, update.rows, update.count});
    } else {
      values.push_back(update.dense);
    }
  }
  return values;
}

PlanRoots PlanRoots::with_values(std::span<const Value> values) const {
  PlanRoots moved = *this;
  std::size_t next = 0;
  const auto take = [&](Value& value) {
    if (value) value = values[next++];
  };
  for (Value& value : moved.fetches) take(value);
  take(moved.loss);
  take(moved.global_norm);
  for (PlannedUpdate& update : moved.updates) {
    if (!update.sparse()) {
      take(update.dense);
      continue;
    }
    take(update.ids);
    take(update.rows);
    take(update.count);
  }
  PACELINE_CHECK(next == values.size());
  return moved;
}

}  // namespace paceline
