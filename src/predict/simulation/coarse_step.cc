#include "predict/simulation/coarse_step.h"

#include <map>
#include <vector>

#include "params/variable_arrays.h"

namespace paceline {
namespace {

double bytes_of(const VariableSpec& spec) { return double(byte_count(spec.dtype, spec.shape)); }

bool may_join(const SimulatedStep& step, VariableId v) {
  const StepVariable& use = step.variables[std::size_t(v)];
  const VariableSpec& spec = step.specs[std::size_t(v)];
  return use.read && use.updated && !spec.sparse && spec.trained && !spec.rule.whole();
}

/// Assigns variables to groups; a variable that nothing reads has no group.
class Groups {
 public:
  Groups(const SimulatedStep& step, std::size_t most) : of_(step.specs.size(), -1) {
    double all = 0;
    for (const VariableSpec& spec : step.specs) all += bytes_of(spec);
    const double full = all / double(most);
    double bytes = full;
    bool joins = false;
    for (const VariableId v : step.need_order) {
      const bool joined = joins && may_join(step, v) && bytes < full;
      joins = may_join(step, v);
      if (!joined) {
        first_.push_back(v);
        bytes = 0;
        left_.push_back(0);
      }
      bytes += bytes_of(step.specs[std::size_t(v)]);
      of_[std::size_t(v)] = int(first_.size()) - 1;
      ++left_.back();
    }
  }
  std::size_t size() const { return first_.size(); }
  int of(VariableId v) const { return of_[std::size_t(v)]; }
  bool is_first(VariableId v) const { return first_[std::size_t(of(v))] == v; }
  /// Returns true in the last call for a variable of its group.
  bool is_last(VariableId v) { return --left_[std::size_t(of(v))] == 0; }

 private:
  std::vector<int> of_;
  std::vector<VariableId> first_;
  std::vector<int> left_;
};

void add_variable(SimulatedStep& coarse, const SimulatedStep& step, VariableId v, int group) {
  const VariableSpec& spec = step.specs[std::size_t(v)];
  const StepVariable& use = step.variables[std::size_t(v)];
  if (std::size_t(group) == coarse.specs.size()) {
    coarse.specs.push_back(spec);
    coarse.variables.push_back(use);
    coarse.need_order.push_back(group);
    return;
  }
  VariableSpec& into = coarse.specs[std::size_t(group)];
  into.shape = {into.shape.elements() + spec.shape.elements()};
  StepVariable& joined = coarse.variables[std::size_t(group)];
  joined.rule_bytes += use.rule_bytes;
  joined.reread = joined.reread || use.reread;
  joined.tensors += use.tensors;
}

}  // namespace

SimulatedStep coarse_step(const SimulatedStep& step, std::size_t groups_wanted) {
  Groups groups(step, groups_wanted);
  SimulatedStep coarse = step;
  coarse.specs.clear();
  coarse.variables.clear();
  coarse.need_order.clear();
  coarse.actions.clear();
  for (const VariableId v : step.need_order) add_variable(coarse, step, v, groups.of(v));
  std::vector<bool> needed(groups.size());
  std::vector<double> given(groups.size());  // bytes
  for (StepAction action : step.actions) {
    const VariableId v = action.variable;
    std::vector<StepAction>& all = coarse.actions;
    if (action.kind == StepAction::Kind::kRun) {
      if (!all.empty() && all.back().kind == StepAction::Kind::kRun) {
        all.back().seconds += action.seconds;
        all.back().bytes += action.bytes;
        continue;
      }
    } else {
      const auto group = std::size_t(groups.of(v));
      if (action.kind == StepAction::Kind::kNeed && needed[group]) continue;
      if (action.kind == StepAction::Kind::kReady) {
        given[group] += action.bytes;
        action.bytes = given[group];
        if (!groups.is_last(v)) continue;
      }
      needed[group] = true;
      action.variable = VariableId(group);
    }
    all.push_back(action);
  }
  return coarse;
}

}  // namespace paceline
