// A dataflow graph: nodes apply ops to values; shapes are static and checked when a node is added.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "paceline/dtype.h"
#include "paceline/shape.h"
#include "paceline/tensor.h"

namespace paceline {

class Graph;
class Node;
struct Op;
class OpRegistry;

/// What is known of a value before it is computed.
struct ValueType {
  DType dtype = DType::kFloat32;  // of its elements
  Shape shape;                    // known before any step
  /// That the value takes, as byte_count() says.
  std::size_t bytes() const { return byte_count(dtype, shape); }
  /// "float32 (3,4)".
  std::string str() const;
  bool operator==(const ValueType&) const = default;
};

/// One output of a node: a handle, cheap to copy, valid as long as its graph. A default-made Value
/// is no value; in gradients it stands for zero.
class Value {
 public:
  Value() = default;
  /// Output `output` of `node`.
  Value(Node* node, int output) : node_(node), output_(output) {}

  /// Is it a value?
  explicit operator bool() const { return node_ != nullptr; }
  /// What computes it.
  Node& node() const { return *node_; }
  /// Which of its node's outputs it is, from 0.
  int output() const { return output_; }
  /// The graph that owns its node.
  Graph& graph() const;
  /// Element type and shape.
  const ValueType& type() const;
  /// Its static shape.
  const Shape& shape() const { return type().shape; }
  /// Its element type.
  DType dtype() const { return type().dtype; }
  /// The node's scoped name; ":k" is appended for output k > 0.
  std::string name() const;

  bool operator==(const Value&) const = default;

 private:
  Node* node_ = nullptr;
  int output_ = 0;
};

/// What parametrises an op beside its inputs. get<T>() throws kInvalidArgument when absent or of
/// another type.
class Attributes {
 public:
  /// What an attribute can be.
  using Item = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                            DType, Tensor>;
  Attributes() = default;
  /// By name.
  Attributes(std::initializer_list<std::pair<const std::string, Item>> items) : items_(items) {}

  /// Adds or replaces.
  void set(const std::string& name, Item item) { items_[name] = std::move(item); }
  /// Is there one of this name?
  bool has(const std::string& name) const { return items_.contains(name); }
  /// The attribute of this name.
  template <typename T>
  const T& get(const std::string& name) const {
    const T* item = std::get_if<T>(&find(name));
    if (item == nullptr) wrong_type(name);
    return *item;
  }
  /// All of them, by name.
  const std::map<std::string, Item>& items() const { return items_; }

 private:
  const Item& find(const std::string& name) const;
  [[noreturn]] static void wrong_type(const std::string& name);
  std::map<std::string, Item> items_;
};

/// An op applied to values. Made by Graph::add, owned by its graph.
class Node {
 public:
  /// What it applies.
  const Op& op() const { return *op_; }
  /// Unique in the graph, with its scopes: "layer1/matmul".
  const std::string& name() const { return name_; }
  /// Position in the graph; an input's id is always smaller.
  int id() const { return id_; }
  /// Its owner.
  Graph& graph() const { return *graph_; }
  /// What the op is applied to.
  std::span<const Value> inputs() const { return inputs_; }
  /// Input i, from 0.
  const Value& input(int i) const { return inputs_[std::size_t(i)]; }
  /// Types of its outputs, as the op inferred them.
  std::span<const ValueType> outputs() const { return outputs_; }
  /// Output i, from 0.
  Value output(int i) const { return Value(const_cast<Node*>(this), i); }
  /// What parametrises the op.
  const Attributes& attributes() const { return attributes_; }

 private:
  friend class Graph;
  Node() = default;
  const Op* op_ = nullptr;
  std::string name_;
  int id_ = 0;
  Graph* graph_ = nullptr;
  std::vector<Value> inputs_;
  std::vector<ValueType> outputs_;
  Attributes attributes_;
};

/// How a variable begins. Values depend on (seed, variable name, element) only.
struct Initializer {
  /// Which distribution; `a` and `b` are its numbers.
  enum class Kind : std::uint8_t {
    kConstant,         // a
    kUniform,          // in [a, b)
    kNormal,           // of mean a and standard deviation b
    kTruncatedNormal,  // also, redrawn beyond two standard deviations
  };
  Kind kind = Kind::kConstant;  // of each element
  float a = 0;                  // constant: the value; uniform: low; normal: mean
  float b = 0;                  // uniform: high; normal: standard deviation
  bool glorot = false;  // uniform ±√(6 / (fan_in + fan_out)) (Glorot & Bengio, AISTATS 2010)
  bool operator==(const Initializer&) const = default;

  /// Every element is `value`.
  static Initializer constant(float value) { return {Kind::kConstant, value, 0, false}; }
  /// Every element is 0.
  static Initializer zeros() { return constant(0); }
  /// Uniform in [low, high).
  static Initializer uniform(float low, float high) { return {Kind::kUniform, low, high, false}; }
  /// Normally distributed.
  static Initializer normal(float mean, float stddev) {
    return {Kind::kNormal, mean, stddev, false};
  }
  /// Redrawn beyond two standard deviations.
  static Initializer truncated_normal(float mean, float stddev) {
    return {Kind::kTruncatedNormal, mean, stddev, false};
  }
  /// fan_in and fan_out are the last but one and the last dimension times the rest.
  static Initializer glorot_uniform() { return {Kind::kUniform, 0, 0, true}; }
  /// Fills `values`, of shape `shape`, for the variable `name`.
  void fill(std::span<float> values, const Shape& shape, std::uint64_t seed,
            std::string_view name) const;
};

/// Owns nodes. Not thread-safe; stays where it was made, for its values point into it.
class Graph {
 public:
  /// With the ops of the library.
  Graph();
  /// With the ops of `ops`, which must outlive the graph.
  explicit Graph(const OpRegistry& ops);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// A value that is fed before each step.
  Value input(const std::string& name, const Shape& shape, DType dtype = DType::kFloat32);
  /// A shared variable: lives in the parameter store, matched between graphs by its scoped name.
  /// Asking twice for a name gives the same value, which begins as it was first asked to; with
  /// another type it throws kInvalidArgument.
  Value variable(const std::string& name, const Shape& shape,
                 Initializer initializer = Initializer::zeros(), DType dtype = DType::kFloat32);
  /// A local variable: lives in this task's memory, belongs to this graph alone, begins at zero.
  Value local(const std::string& name, const Shape& shape, DType dtype = DType::kFloat32);
  /// At the end of each step the local variable becomes `value` (same type).
  void assign(Value local, Value value);
  /// The same in every step; copied into the graph by sharing its buffer.
  Value constant(const Tensor& value, const std::string& name = "constant");

  /// Adds a node: infers its outputs, which throws kInvalidArgument "[op] …" with the shapes when
  /// the inputs do not fit. `name` defaults to the op's; made unique within its scope.
  Node& add(std::string_view op, std::span<const Value> inputs, Attributes attributes = {},
            std::string_view name = {});
  /// The first output of such a node.
  Value apply(std::string_view op, std::initializer_list<Value> inputs, Attributes attributes = {},
              std::string_view name = {});

  /// Gives `value` a name by which it can be asked for (scoped; unique, else kInvalidArgument).
  Value named(const std::string& name, Value value);
  /// A named value, variable, input or node by its scoped name. Throws kNotFound with the nearest.
  Value find(std::string_view name) const;

  /// While it lives, names of the graph begin with "name/".
  class Scope {
   public:
    /// Borrows the graph, which must outlive it.
    Scope(Graph& graph, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t length_;
  };
  /// Names begin with "name/" as long as the result lives.
  [[nodiscard]] Scope scope(std::string_view name) { return Scope(*this, name); }

  /// What assign() was told.
  struct Assignment {
    Value local;  // a local variable
    Value value;  // what it becomes at the end of a step
  };
  /// The ops that it may use.
  const OpRegistry& ops() const { return *ops_; }
  /// All nodes; each stands after its inputs, at the place of its id.
  std::span<const std::unique_ptr<Node>> nodes() const { return nodes_; }
  /// In the order of assign().
  std::span<const Assignment> assignments() const { return assignments_; }
  /// What named() was told, by scoped name.
  const std::map<std::string, Value, std::less<>>& names() const { return names_; }

  /// One line a node: name, op, shapes, FLOPs and bytes; totals at the end.
  std::string text() const;
  /// Graphviz, the same facts as labels.
  std::string dot() const;

 private:
  std::string scoped(std::string_view name) const { return scope_ + std::string(name); }
  std::string unique_name(std::string_view name);
  Value declare(std::string_view op, const std::string& name, const Shape& shape, DType dtype,
                Attributes attributes);
  Node& append(const Op& op, std::span<const Value> inputs, Attributes attributes,
               std::string name);

  const OpRegistry* ops_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Assignment> assignments_;
  std::set<int> assigned_;  // ids of the locals in assignments_
  std::map<std::string, Value, std::less<>> names_;
  std::map<std::string, Node*, std::less<>> nodes_by_name_;
  std::map<std::string, int, std::less<>> name_counts_;
  std::string scope_;
};

}  // namespace paceline
