#include "paceline/minimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "graph/autodiff.h"
#include "graph/gradient_norm.h"
#include "graph/sources.h"
#include "paceline/error.h"

namespace paceline {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "[minimize] " + message);
}

// Returns, by node id, whether the loss depends on the node.
std::vector<bool> nodes_below(Value loss) {
  const Graph& graph = loss.graph();
  std::vector<bool> needed(graph.nodes().size(), false);
  needed[std::size_t(loss.node().id())] = true;
  for (int id = loss.node().id(); id >= 0; --id) {
    if (!needed[std::size_t(id)]) continue;
    for (const Value& input : graph.nodes()[std::size_t(id)]->inputs()) {
      needed[std::size_t(input.node().id())] = true;
    }
  }
  return needed;
}

// Returns the float variables that the loss depends on, in the order in which they were made.
std::vector<Value> variables_below(Value loss) {
  const std::vector<bool> needed = nodes_below(loss);
  std::vector<Value> variables;
  for (const auto& node : loss.graph().nodes()) {
    const bool trainable = is_variable(*node) && is_floating(node->outputs()[0].dtype);
    if (needed[std::size_t(node->id())] && trainable) variables.push_back(node->output(0));
  }
  return variables;
}

void check_average_decay(float decay, const std::string& whose) {
  if (!(decay >= 0 && decay < 1)) {
    refuse(fmt::format("average decay{} is {}: it must be at least 0 and below 1", whose, decay));
  }
}

void check_clip_value(float limit, const std::string& whose) {
  if (!(limit >= 0)) {
    refuse(fmt::format("clip_value{} is {}: it must be at least 0, which is none", whose, limit));
  }
}

// A misspelt prefix would train its variables with the wrong rule, and nobody would notice.
void check_groups(const Graph& graph, const std::vector<VariableGroup>& groups) {
  std::vector<std::string_view> names;
  for (const auto& node : graph.nodes()) {
    if (is_variable(*node)) names.emplace_back(node->name());
  }
  for (const VariableGroup& group : groups) {
    if (!std::isfinite(group.weight_decay) || group.weight_decay < 0) {
      refuse(fmt::format("weight decay of group '{}' is {}", group.prefix, group.weight_decay));
    }
    check_average_decay(group.average_decay.value_or(0),
                        fmt::format(" of group '{}'", group.prefix));
    check_clip_value(group.clip_value.value_or(0), fmt::format(" of group '{}'", group.prefix));
    const auto in_group = [&](std::string_view name) { return name.starts_with(group.prefix); };
    if (std::ranges::none_of(names, in_group)) {
      refuse(fmt::format("no variable's name begins with '{}'{}", group.prefix,
                         did_you_mean(group.prefix, names)));
    }
  }
}

const VariableGroup* group_of(const Value& variable, const MinimizeOptions& options) {
  const VariableGroup* longest = nullptr;
  for (const VariableGroup& group : options.groups) {
    if (!variable.node().name().starts_with(group.prefix)) continue;
    if (longest == nullptr || group.prefix.size() > longest->prefix.size()) longest = &group;
  }
  return longest;
}

// Fills in what the rule and its options say about the update of a variable.
void settle(VariableUpdate& update, const Rule& rule, const MinimizeOptions& options) {
  const VariableGroup none;
  const VariableGroup* const of = group_of(update.variable, options);
  const VariableGroup& group = of == nullptr ? none : *of;
  update.rule = group.rule.value_or(rule);
  update.weight_decay = group.weight_decay;
  update.average_decay = group.average_decay.value_or(options.average_decay);
  update.learning_rate = group.learning_rate.value_or(options.learning_rate);
  update.average_ramp = options.average_ramp;
}

std::vector<VariableUpdate> planned_updates(Value loss, const Rule& rule,
                                            const MinimizeOptions& options) {
  const std::vector<Value> variables = variables_below(loss);
  if (variables.empty()) refuse(fmt::format("'{}' depends on no variable", loss.name()));
  std::vector<VariableUpdate> updates;
  for (const Value& variable : variables) {
    const VariableGroup* const group = group_of(variable, options);
    if (group != nullptr && group->frozen) continue;
    VariableUpdate& update = updates.emplace_back(VariableUpdate{variable, {}, {}, rule, 0, 0, {}});
    settle(update, rule, options);
  }
  if (updates.empty()) refuse(fmt::format("all variables of '{}' are frozen", loss.name()));
  return updates;
}

// Sums the rows of equal ids, so that the norm, the link and the rule get one row for each id.
void sum_rows(VariableUpdate& update) {
  Gradient& contribution = update.contribution;
  if (!contribution.sparse()) return;
  Graph& graph = update.variable.graph();
  const Value inputs[] = {contribution.ids, contribution.rows};
  Node& sums = graph.add("sum_rows", inputs, {{"table_rows", update.variable.shape()[0]}},
                         update.variable.node().name() + "/sum_rows");
  contribution = {sums.output(0), sums.output(1)};
  update.row_count = sums.output(2);
}

Value within(Value gradient, float limit) {
  Graph& graph = gradient.graph();
  const Value low = graph.constant(Tensor::scalar(-limit));
  const Value high = graph.constant(Tensor::scalar(limit));
  return graph.apply("minimum", {graph.apply("maximum", {gradient, low}), high});
}

// Rows of equal ids must have been summed before: a bound on each term would not bound their sum.
void clip_values(VariableUpdate& update, const MinimizeOptions& options) {
  const VariableGroup* group = group_of(update.variable, options);
  const float limit =
      group == nullptr ? options.clip_value : group->clip_value.value_or(options.clip_value);
  Gradient& contribution = update.contribution;
  if (limit == 0 || !contribution) return;
  Value& part = contribution.sparse() ? contribution.rows : contribution.dense;
  part = within(part, limit);
}

void add_contributions(Value loss, std::vector<VariableUpdate>& updates,
                       const MinimizeOptions& options) {
  std::vector<Value> variables;
  variables.reserve(updates.size());
  for (const VariableUpdate& update : updates) variables.push_back(update.variable);
  const std::vector<Gradient> gradient = differentiate(loss, variables);
  const Graph::Scope scope(loss.graph(), "gradients");
  for (std::size_t i = 0; i < updates.size(); ++i) {
    updates[i].contribution = gradient[i];
    sum_rows(updates[i]);
    clip_values(updates[i], options);
  }
  std::erase_if(updates, [](const VariableUpdate& update) { return !update.contribution; });
  if (updates.empty()) refuse(fmt::format("'{}' has no gradient by any variable", loss.name()));
}

// Appends the updates that Graph::contribute() has declared with values on which the loss depends.
void add_declared(Value loss, const std::vector<bool>& below, const MinimizeOptions& options,
                  std::vector<VariableUpdate>& updates) {
  for (const Graph::Contribution& declared : loss.graph().contributions()) {
    if (!below[std::size_t(declared.value.node().id())]) continue;
    const Value variable = declared.variable;
    if (below[std::size_t(variable.node().id())]) {
      refuse(fmt::format("'{}' depends on '{}', which Graph::contribute updates", loss.name(),
                         variable.name()));
    }
    const VariableGroup* group = group_of(variable, options);
    if (group != nullptr && group->frozen) continue;
    updates.push_back({variable, declared.value, {}, *declared.rule, 0, 0, {}});
  }
}

Value with_weight_decay(Value loss, std::span<const VariableUpdate> updates) {
  Graph& graph = loss.graph();
  const Graph::Scope scope(graph, "weight_decay");
  for (const VariableUpdate& update : updates) {
    if (update.weight_decay == 0) continue;
    const Value squares = graph.apply("square", {update.variable});
    Value sum = graph.apply("reduce_sum", {squares},
                            {{"axes", std::vector<std::int64_t>{}}, {"keep", false}});
    if (sum.dtype() != loss.dtype()) sum = graph.apply("cast", {sum}, {{"dtype", loss.dtype()}});
    const Value term = graph.apply("scale", {sum}, {{"factor", 0.5 * double(update.weight_decay)}});
    loss = graph.apply("add", {loss, term});
  }
  return loss;
}

void check_options(Value loss, const MinimizeOptions& options) {
  if (!loss) refuse("the loss is no value");
  if (!(options.clip_norm >= 0)) refuse(fmt::format("clip_norm is {}", options.clip_norm));
  check_average_decay(options.average_decay, "");
  check_clip_value(options.clip_value, "");
  check_groups(loss.graph(), options.groups);
}

void clip_by_norm(Training& training, float clip_norm) {
  training.clip_norm = clip_norm;
  if (clip_norm == 0) return;
  training.global_norm = norm_of_gradients(training.updates);
  if (!training.global_norm) refuse("clip_norm is given, and no rule takes a gradient");
}

}  // namespace

Training minimize(Value loss, const Rule& rule, const MinimizeOptions& options) {
  check_options(loss, options);
  Training training;
  const std::vector<bool> below = nodes_below(loss);
  training.updates = planned_updates(loss, rule, options);
  add_contributions(loss, training.updates, options);
  add_declared(loss, below, options, training.updates);
  clip_by_norm(training, options.clip_norm);
  training.loss = with_weight_decay(loss, training.updates);
  return training;
}

Training train_with(Value loss, std::vector<VariableUpdate> gradients, const Rule& rule,
                    const MinimizeOptions& options) {
  check_options(loss, options);
  if (gradients.empty()) refuse("there is no gradient");
  Training training;
  training.loss = loss;
  training.updates = std::move(gradients);
  for (VariableUpdate& update : training.updates) {
    settle(update, rule, options);
    clip_values(update, options);
  }
  clip_by_norm(training, options.clip_norm);
  return training;
}

}  // namespace paceline
