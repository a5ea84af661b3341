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
/// Throws kFailedPrecondition, naming the input, when one has an open dimension without a size.
void check_sized(std::span<const Value> inputs, const OpenSizes& sizes);
/// True when a dimension of the shape is open.
bool has_open(const Shape& shape);
/// True if `given` equals `shape` in all dimensions that are not open.
bool fits(const Shape& shape, const Shape& given);
/// Returns the shape for these sizes; dimensions without a size stay open.
Shape sized(const Shape& shape, const OpenSizes& sizes);
/// Adds the sizes that a tensor of shape `given` shows for the open dimensions of an input. Throws
/// kInvalidArgument, with a message that `who` begins, when the shape does not fit the input, a
/// size is 0, or `sizes` has another size already.
void add_sizes(std::string_view who, const Value& input, const Shape& given, OpenSizes& sizes);
/// Returns the attributes of an op that multiplies by a "factor". The number for an open dimension,
/// for a product with one, or 1 ÷ such a number means the dimension: the attributes then have it,
/// too, until it has a size.
Attributes factor_attributes(double factor);
/// Returns the same for 1 ÷ the product of some dimensions.
Attributes mean_attributes(std::vector<std::int64_t> dimensions);

/// Returns the open dimension that a number stands for, or 1 ÷ the number; nothing of another one.
std::optional<std::int64_t> open_number(double number);

/// A copy of a whole graph for some sizes: inputs and local variables have them, and the types of
/// all other nodes are inferred anew. Nodes keep their ids and names, so that each value of the
/// graph has one in the copy, but for those that are not defined for these sizes.
class SizedCopy {
 public:
  SizedCopy(const Graph& graph, OpenSizes sizes);

  /// Copies the nodes that the graph got since the last copy.
  void follow();

  const OpenSizes& sizes() const { return sizes_; }
  Graph& graph() const { return *copy_; }
  /// Returns the value in the copy; no value for no value. Throws kInvalidArgument, with the sizes,
  /// as Graph::add does for sizes that do not fit.
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
  std::map<int, Error> undefined_;  // why nodes of these ids are not; a constant stands for each
  std::size_t assigned_ = 0, contributed_ = 0;  // of the graph's
};

}  // namespace paceline
