#include "graph/open_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

#include "base/check.h"
#include "graph/sources.h"

namespace paceline {
namespace {

// Attributes with the open dimensions of a factor: it is 1 ÷ the product of kOver, or the product
// of kTimes.
constexpr const char *kOver = "over", *kTimes = "times";

bool has_open(std::span<const std::int64_t> dims) { return std::ranges::any_of(dims, is_open); }

double product_of(std::span<const std::int64_t> dims) {
  double product = 1;
  for (const std::int64_t dim : dims) product *= double(dim);
  return product;
}

// Numbers above kMost are refused, since a double does not hold all of them exactly.
std::optional<std::int64_t> open_integer(double number) {
  constexpr double kMost = 9e15;
  if (!(number >= 1 && number <= kMost) || number != std::floor(number)) return {};
  const auto integer = std::int64_t(number);
  return is_open_product(integer) ? std::optional(integer) : std::nullopt;
}

// Replaces the open dimensions in the attributes by their sizes. They stand in lists of numbers,
// such as a shape or the begin of a slice, and in the lists kOver and kTimes, which become a
// factor.
Attributes sized_attributes(const Attributes& attributes, const OpenSizes& sizes) {
  Attributes made;
  std::optional<double> factor;
  for (const auto& [name, item] : attributes.items()) {
    const auto* const dims = std::get_if<std::vector<std::int64_t>>(&item);
    if (dims == nullptr || !has_open(*dims)) {
      made.set(name, item);
      continue;
    }
    std::vector<std::int64_t> now = *dims;
    for (std::int64_t& dim : now) dim = sized(dim, sizes);
    if (has_open(now) || (name != kOver && name != kTimes)) {
      made.set(name, std::move(now));
    } else {
      factor = name == kOver ? 1 / product_of(now) : product_of(now);
    }
  }
  if (factor) made.set("factor", *factor);
  return made;
}

std::string sizes_text(const OpenSizes& sizes) {
  std::vector<std::string> all;
  for (const auto& [name, size] : sizes) all.push_back(fmt::format("{} = {}", name, size));
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

bool has_open(const Shape& shape) { return has_open(shape.dims()); }

std::vector<std::string> open_names(std::span<const Value> values) {
  std::vector<std::string> found;
  for (const Value& value : values) {
    for (const std::int64_t dim : value.shape().dims()) {
      for (std::string& name : open_names(dim)) {
        if (std::ranges::find(found, name) == found.end()) found.push_back(std::move(name));
      }
    }
  }
  return found;
}

std::vector<Value> open_inputs(const Graph& graph) {
  std::vector<Value> inputs;
  for (const auto& node : graph.nodes()) {
    if (is_fed(*node) && has_open(node->output(0).shape())) inputs.push_back(node->output(0));
  }
  return inputs;
}

bool is_sized(std::span<const Value> inputs, const OpenSizes& sizes) {
  return std::ranges::all_of(open_names(inputs),
                             [&](const std::string& name) { return sizes.contains(name); });
}

void check_sized(std::span<const Value> inputs, const OpenSizes& sizes) {
  for (const Value& input : inputs) {
    for (const std::string& name : open_names(std::span(&input, 1))) {
      if (sizes.contains(name)) continue;
      throw Error(
          ErrorCode::kFailedPrecondition,
          fmt::format(
              "[graph] nothing says the size of {}: input '{}' is {}. Give the feed a shape, "
              "or the graph a usual size: graph.open(\"{}\", 64)",
              name, input.name(), input.type().str(), name));
    }
  }
}

bool fits(const Shape& shape, const Shape& given) {
  return std::ranges::equal(shape.dims(), given.dims(), [](std::int64_t dim, std::int64_t size) {
    return dim == size || is_open(dim);
  });
}

Shape sized(const Shape& shape, const OpenSizes& sizes) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (std::int64_t& dim : dims) dim = sized(dim, sizes);
  return Shape(dims);
}

void add_sizes(std::string_view who, const Value& input, const Shape& given, OpenSizes& sizes) {
  const auto refuse = [&](const std::string& why) {
    const ValueType type{input.dtype(), given};
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[{}] input '{}' is {}, the tensor is {}{}", who, input.name(),
                            input.type().str(), type.str(), why));
  };
  if (given.rank() != input.shape().rank()) refuse("");
  for (int axis = 0; axis < given.rank(); ++axis) {
    const std::string name = open_name(input.shape()[axis]);
    if (name.empty()) continue;
    if (given[axis] == 0) refuse(fmt::format(": {} is 0", name));
    const auto [known, is_new] = sizes.emplace(name, given[axis]);
    if (!is_new && known->second != given[axis]) {
      refuse(fmt::format(": {} is {} in another input, or on another axis", name, known->second));
    }
  }
  if (sized(input.shape(), sizes) != given) refuse("");
}

std::optional<std::int64_t> open_number(double number) {
  if (const auto open = open_integer(number)) return open;
  const double inverse = std::round(1 / number);
  return 1 / inverse == number ? open_integer(inverse) : std::nullopt;
}

Attributes factor_attributes(double factor) {
  Attributes attributes;
  attributes.set("factor", factor);
  if (const auto open = open_number(factor)) {
    attributes.set(factor < 1 ? kOver : kTimes, std::vector<std::int64_t>{*open});
  }
  return attributes;
}

Attributes mean_attributes(std::vector<std::int64_t> dimensions) {
  Attributes attributes;
  attributes.set("factor", 1 / product_of(dimensions));
  if (has_open(dimensions)) attributes.set(kOver, std::move(dimensions));
  return attributes;
}

SizedCopy::SizedCopy(const Graph& graph, OpenSizes sizes)
    : graph_(graph), sizes_(std::move(sizes)), copy_(std::make_unique<Graph>(graph.ops())) {
  follow();
}

void SizedCopy::add(const Node& node) {
  try {
    copy_->add(node.op().name, of(node.inputs()), sized_attributes(node.attributes(), sizes_),
               node.name());
    return;
  } catch (const Error& error) {
    const bool is_first = std::ranges::none_of(node.inputs(), [this](const Value& input) {
      return undefined_.contains(input.node().id());
    });
    undefined_.emplace(
        node.id(), is_first ? Error(error.code(),
                                    fmt::format("{} (where {})", error.what(), sizes_text(sizes_)))
                            : error);
  }
  const Attributes nothing = {{"value", Tensor::scalar(0.0f)}};
  copy_->add("constant", {}, nothing, node.name());
}

void SizedCopy::follow() {
  for (std::size_t id = copy_->nodes().size(); id < graph_.nodes().size(); ++id) {
    add(*graph_.nodes()[id]);
  }
  const auto is_defined = [this](const Value& value) {
    return !undefined_.contains(value.node().id());
  };
  for (; assigned_ < graph_.assignments().size(); ++assigned_) {
    const auto& [local, value] = graph_.assignments()[assigned_];
    if (is_defined(value)) copy_->assign(of(local), of(value));
  }
  for (; contributed_ < graph_.contributions().size(); ++contributed_) {
    const Graph::Contribution& each = graph_.contributions()[contributed_];
    if (is_defined(each.value)) copy_->contribute(of(each.variable), of(each.value), *each.rule);
  }
  for (const auto& [name, value] : graph_.names()) {
    if (is_defined(value) && !copy_->names().contains(name)) copy_->named(name, of(value));
  }
}

Value SizedCopy::of(const Value& value) const {
  if (!value) return value;
  PACELINE_CHECK(&value.graph() == &graph_);
  const int id = value.node().id();
  if (const auto why = undefined_.find(id); why != undefined_.end()) throw Error(why->second);
  return copy_->nodes()[std::size_t(id)]->output(value.output());
}

std::vector<Value> SizedCopy::of(std::span<const Value> values) const {
  std::vector<Value> copies;
  std::ranges::transform(values, std::back_inserter(copies),
                         [this](const Value& value) { return of(value); });
  return copies;
}

Training SizedCopy::of(const Training& training) const {
  Training copy = training;
  copy.loss = of(training.loss);
  copy.global_norm = of(training.global_norm);
  for (VariableUpdate& update : copy.updates) {
    update.variable = of(update.variable);
    update.row_count = of(update.row_count);
    Gradient& from = update.contribution;
    from.dense = of(from.dense);
    from.ids = of(from.ids);
    from.rows = of(from.rows);
  }
  return copy;
}

}  // namespace paceline
