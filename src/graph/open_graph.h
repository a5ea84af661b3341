// Graphs with open dimensions, and copies of such graphs for given sizes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/open_dimension.h"
#include "paceline/error.h"
#include "paceline/minimize.h"

namespace paceline {

/// Returns the names of the open dimensions of some values, in the order in which they occur.
std::vector<std::string> open_names(std::span<const Value> values);
/// Returns the inputs and local variables of the graph that have open dimensions.
std::vector<Value> open_inputs(const Graph& graph);
/// True when each open dimension of these inputs has a size.
bool is_sized(std::span<const Value> inputs, const OpenSizes& sizes);
/// Throws kFailedPrecondition if an input has an open dimension without a size; the message names
/// the input.
void check_sized(std::span<const Value> inputs, const OpenSizes& sizes);
/// True when a dimension of the shape is open.
bool has_open(const Shape& shape);
/// True if `given` has the rank of `shape` and equals it in all dimensions that are not open.
bool fits(const Shape& shape, const Shape& given);
/// Returns the shape for these sizes; dimensions without a size stay open.
Shape sized(const Shape& shape, const OpenSizes& sizes);
/// Adds the sizes that the open dimensions of `input` have in a tensor of shape `given`. Throws
/// kInvalidArgument if the shape does not fit the input, a size is 0, or `sizes` has another size
/// already. The message begins with `who`.
void add_sizes(std::string_view who, const Value& input, const Shape& given, OpenSizes& sizes);
/// Returns the attributes of an op that multiplies by a "factor". Special numbers stand for open
/// dimensions and for products with them. If `factor` or 1 ÷ `factor` is such a number, the
/// attributes also hold the dimension, from which a SizedCopy computes the factor.
Attributes factor_attributes(double factor);
/// Returns such attributes for the factor 1 ÷ the product of `dimensions`.
Attributes mean_attributes(std::vector<std::int64_t> dimensions);

/// Returns the open dimension that `number` or 1 ÷ `number` stands for; nothing if neither does.
std::optional<std::int64_t> open_number(double number);

/// A copy of a whole graph for given sizes. Inputs and local variables have these sizes, and the
/// types of all other nodes are inferred anew. Nodes keep their ids and names, so each value of the
/// graph has a counterpart in the copy, unless its node is not defined for these sizes.
class SizedCopy {
 public:
  SizedCopy(const Graph& graph, OpenSizes sizes);

  /// Copies the nodes, assignments, contributions and names that the graph got since the last call.
  void follow();

  const OpenSizes& sizes() const { return sizes_; }
  Graph& graph() const { return *copy_; }
  /// Returns the counterpart of `value` in the copy; an empty value if `value` is empty. If the
  /// value's node is not defined for these sizes, throws the error of Graph::add, with the sizes
  /// added.
  Value of(const Value& value) const;
  std::vector<Value> of(std::span<const Value> values) const;
  Training of(const Training& training) const;
  /// Hands the copied graph over; after that, this object can do nothing more.
  std::unique_ptr<Graph> release() { return std::move(copy_); }

 private:
  const Graph& graph_;
  void add(const Node& node);

  const OpenSizes sizes_;
  std::unique_ptr<Graph> copy_;
  std::map<int, Error> undefined_;  // by id: why a node is not defined; a constant replaces it
  std::size_t assigned_ = 0, contributed_ = 0;  // how many of the graph's are copied
};

}  // namespace paceline
