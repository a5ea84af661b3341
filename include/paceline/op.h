// What an op is, and how to add one of your own: shape, gradient, cost and a kernel.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/graph.h"
#include "paceline/kernel.h"

namespace paceline {

/// The inputs of a node that is being added.
struct OpInputs {
  std::string_view op;               // its name, for messages
  std::span<const ValueType> types;  // one an input
  const Attributes& attributes;      // of the node

  /// Of input i.
  const Shape& shape(int i) const { return types[std::size_t(i)].shape; }
  /// Of input i.
  DType dtype(int i) const { return types[std::size_t(i)].dtype; }
  /// Throws kInvalidArgument "[op] message".
  [[noreturn]] void fail(const std::string& message) const;
  /// Throws unless there are exactly `count` inputs.
  void expect_count(std::size_t count) const;
};

/// The derivative of the loss by a value: dense (the value's shape), or rows of it: row r of
/// `rows` (n, …) belongs to row ids[r] (int32, (n)) of the value; ids may repeat, their rows add.
/// Neither: zero.
struct Gradient {
  Value dense;  // of the value's shape
  Value ids;    // sparse: which rows
  Value rows;   // sparse: their derivatives
  /// Is it given as rows?
  bool sparse() const { return bool(rows); }
  /// Is it anything but zero?
  explicit operator bool() const { return bool(dense) || sparse(); }
};

/// What one execution costs on any device.
struct Cost {
  double flops = 0;  // floating-point operations; a multiplication and an addition are two
  double bytes = 0;  // read and written at least once
};

/// Describes an op to graphs, differentiation, plans and reports. Its functions are called by any
/// thread, also at once.
struct Op {
  std::string name;  // unique in its registry: "matmul"
  /// The types of the outputs; fails with the shapes in its message.
  std::function<std::vector<ValueType>(const OpInputs&)> infer;
  /// Adds nodes that compute the gradients of the inputs from those of the outputs (a Value that
  /// is false stands for zero); one Gradient an input. Without it the op has no gradient, and
  /// `no_gradient` says why.
  std::function<std::vector<Gradient>(const Node&, std::span<const Value> output_gradients)>
      gradient;
  std::string no_gradient;                // why there is none: "its output is an integer"
  std::function<Cost(const Node&)> cost;  // of one execution, from the shapes

  /// The kernel of an op defined outside the library, for every CPU-like device. The library's own
  /// ops leave it empty: their kernels are in kernels/.
  KernelFunction kernel;

  /// Output 0 may take the memory of one of these inputs: the kernel then gives the same result.
  /// Where one value is several inputs its memory is taken only if all of them are listed.
  std::vector<int> in_place;
  /// At which element of input 0 the output begins whose elements lie there in their order; −1:
  /// they do not. Plans then run no kernel where that is a place for kernels to read. An op whose
  /// output is all of input 0 under another shape needs none at all. Empty: never.
  std::function<std::int64_t(const Node&, int output)> view;
  /// The same the other way round: at which element of output 0 an input begins whose elements lie
  /// there in their order; −1: they do not. Where all do, plans have them written there in the
  /// first place, if they can, and run no kernel. Empty: never.
  std::function<std::int64_t(const Node&, int input)> concat_offset;
  /// Draws random numbers or has an effect: never merged, folded or dropped for its inputs.
  bool stateful = false;
};

/// The ops that a graph may use.
class OpRegistry {
 public:
  /// Throws kInvalidArgument when the name is taken, or infer or cost is missing, or neither
  /// gradient nor no_gradient is given.
  const Op& add(Op op);
  /// Is there an op of this name?
  bool contains(std::string_view name) const { return ops_.contains(name); }
  /// Throws kNotFound, with the nearest name.
  const Op& find(std::string_view name) const;
  /// All of them, by name; borrowed.
  std::vector<const Op*> all() const;

 private:
  std::map<std::string, std::unique_ptr<Op>, std::less<>> ops_;
};

/// The library's ops; never changes.
const OpRegistry& builtin_ops();
/// A registry with the library's ops, to which own ones can be added.
OpRegistry copy_of_builtin_ops();
/// Adds an op of your own to `registry`; it must have a kernel.
const Op& register_op(OpRegistry& registry, Op op);

}  // namespace paceline
