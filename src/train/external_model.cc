// The graph has a node for the first use of each variable, one for each gradient and one for the
// loss. Their kernels meet the other code on the board: they show values, take gradients and wait
// for the loss.
//
// The session runs on a thread of its own. A thread of the program puts what it brings on the board
// and never waits for the session to take it; it waits only for a value. Kernels that wait for the
// program run in the order in which it delivers (Op::first_to_come), so that each gradient is
// handed over as soon as it is there.
#include "train/external_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

constexpr char kVariable[] = "variable";  // an index
constexpr char kSeconds[] = "seconds";
constexpr char kByRows[] = "by_rows";

// Tokens order the kernels; nobody reads what they are.
const ValueType kToken{DType::kUInt8, Shape{}};

const ExternalVariable& checked(const ExternalVariable& variable, std::set<std::string>& names) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[store] variable '{}' {}", variable.name, why));
  };
  if (variable.name.empty()) refuse("has no name");
  if (!names.insert(variable.name).second) refuse("is given twice");
  if (!variable.initial.defined()) refuse("has no initial value");
  if (variable.initial.dtype() != DType::kFloat32) {
    refuse(fmt::format("is {}: a store keeps float32 (contributions may travel as bfloat16)",
                       name_of(variable.initial.dtype())));
  }
  if (variable.most_rows < 0) refuse(fmt::format("has {} rows in a step", variable.most_rows));
  if (variable.most_rows > 0 && variable.initial.shape().rank() < 1) {
    refuse("is a scalar, and cannot be read by rows");
  }
  return variable;
}

const std::vector<ExternalVariable>& checked(const std::vector<ExternalVariable>& variables) {
  std::set<std::string> names;
  for (const ExternalVariable& variable : variables) checked(variable, names);
  if (std::ranges::all_of(variables, &ExternalVariable::frozen)) {
    throw Error(ErrorCode::kInvalidArgument, variables.empty()
                                                 ? "[store] there is no variable"
                                                 : "[store] all variables are frozen");
  }
  return variables;
}

int variable_of(const Node& node) { return int(node.attributes().get<std::int64_t>(kVariable)); }

double seconds_of(const Node& node) { return node.attributes().get<double>(kSeconds); }

void write_token(const KernelCall& call) { *call.outputs.back().as<std::uint8_t>() = 0; }

// Where only the time of a step is tried, it passes: on fewer threads than the other code had, as
// much longer.
void pass_time(const Node& node, const KernelCall& call, int threads) {
  const int here = call.threads == nullptr ? 1 : call.threads->count();
  const double times = std::max(1.0, double(threads) / double(here));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds_of(node) * times));
}

// Predictions divide the time of all kernels by these. Where nothing was measured, each element is
// multiplied and added once for its use, and twice for its gradient.
Cost cost_of(const Node& node, double flops_of_element) {
  const double seconds = seconds_of(node);
  if (seconds > 0) return {.flops = seconds * 1e9, .bytes = 0};
  const double elements = double(node.inputs().back().shape().elements());
  return {.flops = flops_of_element * elements, .bytes = 0};
}

Op without_gradient(std::string name) {
  Op op;
  op.name = std::move(name);
  op.no_gradient = "other code computes it";
  op.stateful = true;
  return op;
}

}  // namespace

ExternalModel::ExternalModel(std::shared_ptr<ExternalBoard> board, const Rule& rule,
                             const MinimizeOptions& options, int threads)
    : board_(std::move(board)),
      factors_(
          std::make_shared<std::vector<std::atomic<double>>>(checked(board_->variables()).size())),
      ops_(ops(threads)),
      graph_(ops_) {
  for (std::atomic<double>& factor : *factors_) factor = 1;
  const std::size_t count = board_->variables().size();
  for (std::size_t v = 0; v < count; ++v) reads_.push_back(read_of(v));
  const Value forward = needs_in_order();
  std::vector<Value> before_loss = {forward};
  std::vector<VariableUpdate> updates = gradients(forward, before_loss);
  const Value loss =
      graph_.add("external_loss", before_loss, {{kSeconds, 0.0}}, "paceline/loss").output(0);
  training_ = train_with(loss, std::move(updates), rule, with_groups(options));
}

OpRegistry ExternalModel::ops(int threads) {
  OpRegistry ops = copy_of_builtin_ops();
  Op value = without_gradient("external_value");
  value.infer = [](const OpInputs&) { return std::vector{kToken}; };
  value.cost = [](const Node& node) { return cost_of(node, 2); };
  value.kernel = [board = board_, threads](const Node& node, const KernelCall& call) {
    write_token(call);
    if (!board->is_open()) return pass_time(node, call, threads);
    board->show(variable_of(node), call.inputs.back());
  };
  register_op(ops, std::move(value));

  Op gradient = without_gradient("external_gradient");
  gradient.infer = [](const OpInputs& in) {
    const ValueType& type = in.types.back();
    if (!in.attributes.get<bool>(kByRows)) return std::vector{type, kToken};
    return std::vector{
        {DType::kInt32, Shape{type.shape[0]}}, type, {DType::kInt32, Shape{}}, kToken};
  };
  gradient.cost = [](const Node& node) { return cost_of(node, 4); };
  gradient.kernel = [board = board_, threads](const Node& node, const KernelCall& call) {
    write_token(call);
    const bool by_rows = node.attributes().get<bool>(kByRows);
    if (!board->is_open()) {
      if (by_rows) *call.outputs[2].as<std::int32_t>() = 0;
      return pass_time(node, call, threads);
    }
    by_rows ? board->take_rows(variable_of(node), call) : board->take(variable_of(node), call);
  };
  gradient.first_to_come = [board = board_](std::span<const Node* const> nodes) {
    if (!board->is_open()) return std::size_t{0};
    return board->first_handed_over(nodes.size(),
                                    [&](std::size_t i) { return variable_of(*nodes[i]); });
  };
  gradient.lends = true;
  register_op(ops, std::move(gradient));

  Op loss = without_gradient("external_loss");
  loss.infer = [](const OpInputs&) { return std::vector{ValueType{DType::kFloat64, Shape{}}}; };
  loss.cost = [](const Node&) { return Cost{}; };
  loss.kernel = [board = board_](const Node&, const KernelCall& call) {
    *call.outputs[0].as<double>() = board->is_open() ? board->take_loss() : 0;
  };
  register_op(ops, std::move(loss));
  return ops;
}

ExternalModel::Read ExternalModel::read_of(std::size_t v) {
  const ExternalVariable& of = board_->variables()[v];
  Read read;
  read.variable = graph_.variable(of.name, of.initial.shape(), Initializer::values(of.initial));
  if (of.most_rows == 0) {
    read.value = read.variable;
    return read;
  }
  read.ids = graph_.input("paceline/rows/" + of.name, {of.most_rows}, DType::kInt32);
  read.value = embedding_lookup(read.variable, read.ids);
  return read;
}

Value ExternalModel::needs_in_order() {
  Value token;
  for (std::size_t v = 0; v < reads_.size(); ++v) {
    const ExternalVariable& of = board_->variables()[v];
    std::vector<Value> inputs;
    if (token) inputs.push_back(token);
    inputs.push_back(reads_[v].value);
    token = graph_
                .add("external_value", inputs,
                     {{kVariable, std::int64_t(v)}, {kSeconds, of.seconds_to_need}},
                     "paceline/value/" + of.name)
                .output(0);
  }
  return token;
}

// The last variables' gradients are expected first. What is read stays as it is until the gradient
// is there, since the gradient reads it, too. What has none stays until the loss; so do rows, whose
// memory another gradient could else take that comes earlier.
std::vector<VariableUpdate> ExternalModel::gradients(Value forward, std::vector<Value>& all) {
  std::vector<VariableUpdate> updates;
  for (std::size_t left = reads_.size(); left > 0; --left) {
    const std::size_t v = left - 1;
    const ExternalVariable& of = board_->variables()[v];
    if (of.frozen) {
      all.push_back(reads_[v].value);
      continue;
    }
    const Value inputs[] = {forward, reads_[v].value};
    const bool by_rows = of.most_rows > 0;
    const Node& node = graph_.add(
        "external_gradient", inputs,
        {{kVariable, std::int64_t(v)}, {kSeconds, of.seconds_to_ready}, {kByRows, by_rows}},
        "paceline/gradient/" + of.name);
    VariableUpdate update{reads_[v].variable, {}, {}, Sgd{}, 0, 0, {}};
    if (by_rows) {
      update.contribution = {{}, node.output(0), node.output(1)};
      update.row_count = node.output(2);
    } else {
      update.contribution.dense = node.output(0);
    }
    all.push_back(node.output(int(node.outputs().size()) - 1));
    if (by_rows) all.push_back(reads_[v].value);
    updates.push_back(std::move(update));
  }
  std::ranges::reverse(updates);
  return updates;
}

// A group of each variable: its own options, or those of the group that its name belongs to.
MinimizeOptions ExternalModel::with_groups(MinimizeOptions options) const {
  std::vector<VariableGroup> groups;
  for (const VariableGroup& group : options.groups) {
    if (!group.frozen) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[store] group '{}' is frozen: of a store each variable says so itself",
                            group.prefix));
  }
  for (std::size_t v = 0; v < reads_.size(); ++v) {
    const ExternalVariable& of = board_->variables()[v];
    VariableGroup group;
    std::size_t longest = 0;
    for (const VariableGroup& each : options.groups) {
      if (!of.name.starts_with(each.prefix) || each.prefix.size() < longest) continue;
      longest = each.prefix.size();
      group = each;
    }
    if (of.own) group = *of.own;
    group.prefix = of.name;
    const Schedule schedule = group.learning_rate.value_or(options.learning_rate);
    group.learning_rate = Schedule([schedule, factors = factors_, v](std::int64_t step) {
      return schedule.at(step) * (*factors)[v].load();
    });
    groups.push_back(std::move(group));
  }
  // Behind them, so that a prefix that no variable has is refused.
  groups.insert(groups.end(), options.groups.begin(), options.groups.end());
  options.groups = std::move(groups);
  return options;
}

void ExternalModel::check(const std::vector<BatchRows>& rows) const {
  for (const BatchRows& batch : rows) {
    const ExternalVariable& of = board_->variable(batch.variable);
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("[store] '{}' {}", of.name, why));
    };
    if (of.most_rows == 0) refuse("is not read by rows");
    if (std::int64_t(batch.ids.size()) > of.most_rows) {
      refuse(fmt::format("is to be read in {} rows, and was made for {} in a step at most",
                         batch.ids.size(), of.most_rows));
    }
    const std::int64_t all = of.initial.shape()[0];
    for (const std::int32_t id : batch.ids) {
      if (id < 0 || id >= all) refuse(fmt::format("has {} rows, and no row {}", all, id));
    }
  }
}

void ExternalModel::feed(Feed& feed, const std::vector<BatchRows>& rows) const {
  std::vector<std::int64_t> counts(reads_.size(), -1);
  const std::vector<std::int32_t> none;
  std::vector<const std::vector<std::int32_t>*> ids(reads_.size(), &none);
  for (const BatchRows& batch : rows) {
    ids[std::size_t(batch.variable)] = &batch.ids;
    counts[std::size_t(batch.variable)] = std::int64_t(batch.ids.size());
  }
  for (std::size_t v = 0; v < reads_.size(); ++v) {
    if (!reads_[v].ids) continue;
    // A row that is read once more costs nothing.
    const std::span<std::int32_t> input = feed.data<std::int32_t>(reads_[v].ids);
    std::ranges::fill(input, ids[v]->empty() ? 0 : ids[v]->front());
    std::ranges::copy(*ids[v], input.begin());
  }
  board_->open(std::move(counts));
}

void ExternalModel::set_learning_rate_factor(int variable, double factor) {
  board_->variable(variable);
  (*factors_)[std::size_t(variable)] = factor;
}

}  // namespace paceline
