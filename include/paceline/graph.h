// A dataflow graph: nodes apply ops to values; shapes are static and checked when a node is added.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "paceline/tensor.h"

namespace paceline {

class Graph;
class Node;
struct Op;
class OpRegistry;
class Rule;

/// The type and shape of a value, which are known before it is computed.
struct ValueType {
  DType dtype = DType::kFloat32;  // the type of its elements
  Shape shape;                    // static, but for open dimensions (Graph::open)
  /// The number of bytes that the value takes, as byte_count() counts them.
  std::size_t bytes() const { return byte_count(dtype, shape); }
  /// The type as text: "float32 (3,4)".
  std::string str() const;
  bool operator==(const ValueType&) const = default;
};

/// One output of a node. It is a handle that is cheap to copy and valid as long as its graph. A
/// default-constructed Value is no value; in gradients it stands for zero.
class Value {
 public:
  Value() = default;
  /// Output number `output`, from 0, of `node`.
  Value(Node* node, int output) : node_(node), output_(output) {}

  /// True unless it is default-constructed.
  explicit operator bool() const { return node_ != nullptr; }
  /// The node that computes it.
  Node& node() const { return *node_; }
  /// The index of the value among the outputs of its node, from 0.
  int output() const { return output_; }
  /// The graph that owns its node.
  Graph& graph() const;
  /// Its element type and shape.
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

/// The parameters of a node besides its inputs, by name. get<T>() throws kInvalidArgument when the
/// attribute is absent or of another type. Copies share the attributes until one is changed.
class Attributes {
 public:
  /// The types that an attribute can have.
  using Item = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                            DType, Tensor>;
  Attributes() = default;
  /// The given attributes by name.
  Attributes(std::initializer_list<std::pair<const std::string, Item>> items)
      : items_(std::make_shared<Items>(items)) {}

  /// Adds or replaces the attribute of this name.
  void set(const std::string& name, Item item);
  /// True when there is an attribute of this name.
  bool has(const std::string& name) const { return items().contains(name); }
  /// The attribute of this name.
  template <typename T>
  const T& get(const std::string& name) const {
    const T* item = std::get_if<T>(&find(name));
    if (item == nullptr) wrong_type(name);
    return *item;
  }
  /// All attributes by name.
  const std::map<std::string, Item>& items() const;

 private:
  using Items = std::map<std::string, Item>;
  const Item& find(const std::string& name) const;
  [[noreturn]] static void wrong_type(const std::string& name);
  std::shared_ptr<Items> items_;  // null: there are none
};

/// An op applied to values. Graph::add makes it, and its graph owns it.
class Node {
 public:
  /// The op that it applies.
  const Op& op() const { return *op_; }
  /// Its name with its scopes, unique in the graph: "layer1/matmul".
  const std::string& name() const { return *name_; }
  /// The position of the node in the graph, from 0. The nodes of its inputs have smaller ids.
  int id() const { return id_; }
  /// The graph that owns it.
  Graph& graph() const { return *graph_; }
  /// The values that the op is applied to.
  std::span<const Value> inputs() const { return inputs_; }
  /// Input i, from 0.
  const Value& input(int i) const { return inputs_[std::size_t(i)]; }
  /// The types of its outputs, as the op inferred them.
  std::span<const ValueType> outputs() const { return outputs_; }
  /// Output i, from 0.
  Value output(int i) const { return Value(const_cast<Node*>(this), i); }
  /// The parameters of the op.
  const Attributes& attributes() const { return attributes_; }
  /// Frees nothing: nodes lie in memory that the graph owns and frees.
  static void operator delete(void* /*node*/) noexcept {}

 private:
  friend class Graph;
  friend class GraphCopy;
  explicit Node(std::pmr::memory_resource* memory) : inputs_(memory), outputs_(memory) {}
  const Op* op_ = nullptr;
  std::shared_ptr<const std::string> name_;  // copies of a graph share their names
  int id_ = 0;
  Graph* graph_ = nullptr;
  std::pmr::vector<Value> inputs_;
  std::pmr::vector<ValueType> outputs_;
  Attributes attributes_;
};

/// The initial value of a variable. It depends on (seed, variable name, element) only.
struct Initializer {
  /// The distribution; `a` and `b` are its numbers.
  enum class Kind : std::uint8_t {
    kConstant,         // a
    kUniform,          // in [a, b)
    kNormal,           // mean a and standard deviation b
    kTruncatedNormal,  // kNormal, redrawn beyond two standard deviations
    kValues,           // `given`
  };
  Kind kind = Kind::kConstant;  // the distribution of each element
  float a = 0;                  // constant: the value; uniform: low; normal: mean
  float b = 0;                  // uniform: high; normal: standard deviation
  bool glorot = false;  // uniform ±√(6 / (fan_in + fan_out)) (Glorot & Bengio, AISTATS 2010)
  Tensor given = {};    // float32, of the variable's shape; copies share it
  /// True if kind and numbers are equal, and given values (kValues) lie in the same memory.
  bool operator==(const Initializer& other) const {
    return kind == other.kind && a == other.a && b == other.b && glorot == other.glorot &&
           given.raw() == other.given.raw();
  }

  /// Every element is `value`.
  static Initializer constant(float value) { return {.kind = Kind::kConstant, .a = value}; }
  /// Every element is 0.
  static Initializer zeros() { return constant(0); }
  /// The elements are uniform in [low, high).
  static Initializer uniform(float low, float high) {
    return {.kind = Kind::kUniform, .a = low, .b = high};
  }
  /// The elements are normally distributed.
  static Initializer normal(float mean, float stddev) {
    return {.kind = Kind::kNormal, .a = mean, .b = stddev};
  }
  /// The elements are normally distributed; numbers beyond two standard deviations are drawn again.
  static Initializer truncated_normal(float mean, float stddev) {
    return {.kind = Kind::kTruncatedNormal, .a = mean, .b = stddev};
  }
  /// The elements are those of a float32 tensor of the variable's shape, such as values computed
  /// from the data.
  static Initializer values(const Tensor& given) { return {.kind = Kind::kValues, .given = given}; }
  /// Glorot-uniform elements (see `glorot`). fan_in is the last dimension but one and fan_out the
  /// last one, as in the weights of `dense`. In a shape of four dimensions, as the weights of
  /// conv2d have, fan_in is the second dimension and fan_out the first. Each is multiplied by the
  /// product of the other dimensions.
  static Initializer glorot_uniform() { return {.kind = Kind::kUniform, .glorot = true}; }
  /// Fills `values`, of shape `shape`, for the variable `name`.
  void fill(std::span<float> values, const Shape& shape, std::uint64_t seed,
            std::string_view name) const;
};

/// A dataflow graph, which owns its nodes. It is not thread-safe, and it cannot be moved, because
/// its values point into it.
class Graph {
 public:
  /// A graph with the ops of the library.
  Graph();
  /// A graph with the ops of `ops`, which must outlive it.
  explicit Graph(const OpRegistry& ops);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// A dimension whose size is known when the graph is computed:
  ///
  ///     const auto batch = graph.open("batch");
  ///     const Value x = graph.input("x", {batch, 64});
  ///
  /// The returned number stands for the size in shapes, alone or in products, as in reshape(x,
  /// {batch * 8, 8}); printed shapes show the name instead. Outside of shapes, the number may only
  /// be part of a factor of `scale`, such as 1.0 / batch. A name means the same dimension in all
  /// graphs of a process, which may have at most 16 names. The shape of a variable must have no
  /// open dimension. Sessions train and evaluate such a graph with the sizes that each feed gives
  /// (Feed::view), a Predictor serves it, and write_onnx writes it. `usual` is the size with which
  /// predictions, dry runs and sessions plan before a feed has given one. A session that trains
  /// needs `usual`; 0 means that the size is not given. Throws kInvalidArgument when `usual` is
  /// below 0 or differs from an earlier one, when the name is empty, and for a 17th name.
  std::int64_t open(const std::string& name, std::int64_t usual = 0);
  /// The usual sizes of open dimensions, by name.
  const std::map<std::string, std::int64_t, std::less<>>& usual_sizes() const {
    return usual_sizes_;
  }
  /// A value that is fed before each step.
  Value input(const std::string& name, const Shape& shape, DType dtype = DType::kFloat32);
  /// A shared variable. The parameter store holds the variable, and graphs that use the same scoped
  /// name share it. A second call with the same name returns the same value and ignores the
  /// initializer. Throws kInvalidArgument when the second call has another type or shape.
  Value variable(const std::string& name, const Shape& shape,
                 Initializer initializer = Initializer::zeros(), DType dtype = DType::kFloat32);
  /// A local variable. It lies in the memory of this task, belongs to this graph alone, and is zero
  /// at first.
  Value local(const std::string& name, const Shape& shape, DType dtype = DType::kFloat32);
  /// At the end of each step, `local` takes the value that `value` has in this step. Throws
  /// kInvalidArgument when the two differ in type or shape, or when `local` is assigned already.
  void assign(Value local, Value value);
  /// Makes each step of a training (minimize) contribute `value` to the shared variable, if the
  /// loss depends on the node of `value`. Both have the same type and shape, and `rule` updates the
  /// variable. batch_norm keeps its moving statistics in this way, by the rule Ema. `value` is no
  /// gradient: it is not clipped, nothing decays, and no learning-rate schedule applies. The loss
  /// may not depend on the variable itself.
  void contribute(Value variable, Value value, const Rule& rule);
  /// A value that is the same in every step. The graph shares the buffer of `value`.
  Value constant(const Tensor& value, const std::string& name = "constant");

  /// Adds a node and infers its outputs. Throws kInvalidArgument "[op] …" with the shapes when the
  /// inputs do not fit. The name of the node is `name`, or by default the name of the op; it is
  /// made unique within its scope.
  Node& add(std::string_view op, std::span<const Value> inputs, Attributes attributes = {},
            std::string_view name = {});
  /// Adds a node as `add` does, and returns its first output.
  Value apply(std::string_view op, std::initializer_list<Value> inputs, Attributes attributes = {},
              std::string_view name = {});

  /// Gives `value` a name by which find() returns it. The name gets the scopes as a prefix. Throws
  /// kInvalidArgument when the scoped name is taken.
  Value named(const std::string& name, Value value);
  /// The value of this scoped name, which named() gave or a node has ("name:k" for output k).
  /// Throws kNotFound, with the nearest name, when there is none.
  Value find(std::string_view name) const;

  /// While a Scope lives, the names of nodes that are added to the graph begin with "name/".
  class Scope {
   public:
    /// The graph must outlive it.
    Scope(Graph& graph, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t length_;
  };
  /// Names of added nodes begin with "name/" as long as the returned Scope lives.
  [[nodiscard]] Scope scope(std::string_view name) { return Scope(*this, name); }

  /// One call of assign().
  struct Assignment {
    Value local;  // a local variable
    Value value;  // its new value at the end of a step
  };
  /// One call of contribute().
  struct Contribution {
    Value variable;                    // a shared variable
    Value value;                       // the value that it is updated with
    std::shared_ptr<const Rule> rule;  // the rule that updates it
  };
  /// The ops that the graph can use.
  const OpRegistry& ops() const { return *ops_; }
  /// All nodes in the order of their ids, so that each node follows its inputs.
  std::span<const std::unique_ptr<Node>> nodes() const { return nodes_; }
  /// The calls of assign(), in their order.
  std::span<const Assignment> assignments() const { return assignments_; }
  /// The calls of contribute(), in their order.
  std::span<const Contribution> contributions() const { return contributions_; }
  /// The values that named() was given, by scoped name.
  const std::map<std::string, Value, std::less<>>& names() const { return names_; }

  /// The graph as text: a line for each node with its name, op, shapes, FLOPs and bytes, then the
  /// totals.
  std::string text() const;
  /// The graph in the language of Graphviz, with the same facts as labels.
  std::string dot() const;

 private:
  friend class GraphCopy;
  std::string scoped(std::string_view name) const { return scope_ + std::string(name); }
  /// Adds all nodes to nodes_by_name_ that are not in it yet, and makes their names unique.
  void index_names() const;
  std::string numbered_name(const std::string& taken) const;
  Value declare(std::string_view op, const std::string& name, const Shape& shape, DType dtype,
                Attributes attributes);
  Node& append(const Op& op, std::span<const Value> inputs, Attributes attributes,
               std::string name);
  /// Adds a node of known output types. The name is made unique later: at the next look-up of a
  /// name, or in append().
  Node& append_typed(const Op& op, std::span<const Value> inputs,
                     std::span<const ValueType> outputs, Attributes attributes,
                     std::shared_ptr<const std::string> name);

  const OpRegistry* ops_;
  /// Memory of the nodes, their inputs and outputs, and the index of names.
  mutable std::pmr::monotonic_buffer_resource memory_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Assignment> assignments_;
  std::set<int> assigned_;  // ids of the locals in assignments_
  std::vector<Contribution> contributions_;
  std::map<std::string, std::int64_t, std::less<>> usual_sizes_;
  std::map<std::string, Value, std::less<>> names_;
  /// The first `indexed_` nodes by name; the nodes own the names. The index is filled only when it
  /// is needed, since few copies of a graph are ever asked for a name.
  mutable std::pmr::unordered_map<std::string_view, Node*> nodes_by_name_{&memory_};
  mutable std::size_t indexed_ = 0;
  mutable std::map<std::string, int, std::less<>> name_counts_;
  std::string scope_;
};

}  // namespace paceline
