// Ops, and how to add one of your own: shape, gradient, cost and a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "paceline/graph.h"
#include "paceline/tensor.h"

namespace paceline {

/// The identity of a step. Random ops draw numbers that depend on this identity, never on threads
/// or time.
struct StepIdentity {
  std::uint64_t seed = 0;  // the seed of the run
  std::int64_t task = 0;   // the worker's index
  std::int64_t step = 0;   // the task's own step
};

/// Receives an output range by range, while each range is in the cache, so that no memory holds the
/// output as a whole.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// Takes elements [first, first + values.size()) of the row-major output. Every element arrives
  /// once in a step. Several threads may call at once, with different ranges. `values` is valid
  /// during the call.
  virtual void take(std::int64_t first, std::span<const float> values) = 0;
};

/// Sums over a batch of which several devices or tasks each compute a part. A kernel that needs
/// sums over the whole batch exchanges its own sums for them in the middle of a step.
class SumExchange {
 public:
  virtual ~SumExchange() = default;
  /// Replaces each number by its sum over all parts of the batch; the sums have the same bits in
  /// all parts. Waits for the other parts, which must make the same calls in the same order. An
  /// exception ends the step.
  virtual void add_up(std::span<double> sums) = 0;
};

/// The threads of the device that runs a kernel.
class KernelThreads {
 public:
  virtual ~KernelThreads() = default;
  /// Returns the number of threads, the calling one included.
  virtual int count() const = 0;
  /// Calls call(object, begin, end) for ranges of about `grain` or more that make up [0, n), on any
  /// threads at once, and returns when all have returned. Throws the first exception that a call
  /// has thrown.
  virtual void run(std::int64_t n, std::int64_t grain, void* object,
                   void (*call)(void*, std::int64_t, std::int64_t)) = 0;
};

/// One execution of a node. The views are row-major and valid during the call.
struct KernelCall {
  std::span<const TensorView> inputs;   // in the order of the node's inputs; not to be written
  std::span<const TensorView> outputs;  // in the order of the node's outputs; to be written whole
  /// Memory of scratch_bytes() bytes, 64-byte aligned, with undefined content.
  std::span<std::byte> scratch;
  StepIdentity step;  // seeds random ops
  /// The receiver of output 0 after Kernel::stream_output(); outputs[0] then has no memory.
  OutputSink* sink = nullptr;
  /// If `lent` is not null, the kernel may leave output 0 in other memory, which nobody writes or
  /// frees before the step has ended. The kernel then stores the address of that memory in *lent,
  /// and does not write outputs[0] (Op::lends).
  void** lent = nullptr;
  /// The threads of the device, for kernels of ops defined outside the library. May be null.
  KernelThreads* threads = nullptr;
  /// The exchange of sums with the other parts of the batch, for batch norm. Null when batch norm
  /// takes the statistics of this part alone.
  SumExchange* exchange = nullptr;

  /// Calls function(begin, end) for ranges of about `grain` or more that make up [0, n), on several
  /// threads of the device at once. A call may write only the elements of its own range. Allocates
  /// nothing.
  template <typename F>
  void parallel_for(std::int64_t n, std::int64_t grain, F&& function) const {
    if (n <= 0) return;
    if (threads == nullptr) return function(std::int64_t{0}, n);
    using Function = std::remove_reference_t<F>;
    const auto call = [](void* object, std::int64_t begin, std::int64_t end) {
      (*static_cast<Function*>(object))(begin, end);
    };
    threads->run(n, grain, const_cast<void*>(static_cast<const void*>(&function)), call);
  }
};

/// The kernel of one node. A plan makes a kernel once, and the constructor makes whatever tables
/// the kernel needs.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Asks the kernel, before scratch_bytes() is called, to give output 0 (float32) to
  /// KernelCall::sink in every run. Returns false when the kernel gives its output only as a whole.
  virtual bool stream_output() { return false; }
  /// The number of bytes of KernelCall::scratch that run() needs.
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Computes the node. Must not allocate memory.
  virtual void run(const KernelCall& call) = 0;
};

/// The simple form of a kernel, for ops defined outside the library.
using KernelFunction = std::function<void(const Node&, const KernelCall&)>;

/// The inputs of a node that is being added.
struct OpInputs {
  std::string_view op;               // the op's name, for messages
  std::span<const ValueType> types;  // one type per input
  const Attributes& attributes;      // the attributes of the node

  /// The shape of input i.
  const Shape& shape(int i) const { return types[std::size_t(i)].shape; }
  /// The element type of input i.
  DType dtype(int i) const { return types[std::size_t(i)].dtype; }
  /// Throws kInvalidArgument "[op] message".
  [[noreturn]] void fail(const std::string& message) const;
  /// Throws unless there are exactly `count` inputs.
  void expect_count(std::size_t count) const;
};

/// The derivative of the loss by a value. It is dense, with the shape of the value, or consists of
/// some rows: row r of `rows` (n, …) belongs to row ids[r] (int32, (n)) of the value. Ids may
/// repeat; their rows are added. A gradient that has neither form is zero.
struct Gradient {
  Gradient() = default;                                                  ///< Zero.
  Gradient(Value of_all) : dense(of_all) {}                              ///< Dense.
  Gradient(Value of_ids, Value of_rows) : ids(of_ids), rows(of_rows) {}  ///< Some rows.

  Value dense;  // the dense derivative
  Value ids;    // the indices of the rows
  Value rows;   // the derivatives by these rows
  /// True when the gradient is given as rows.
  bool sparse() const { return bool(rows); }
  /// True unless the gradient is zero (has neither form).
  explicit operator bool() const { return bool(dense) || sparse(); }
};

/// The cost of one execution, on any device.
struct Cost {
  double flops = 0;  // floating-point operations; a multiplication and an addition are two
  double bytes = 0;  // the bytes of memory that must be read and written
};

/// Describes an op to graphs, differentiation, plans and reports. Several threads may call
/// its functions at once.
struct Op {
  std::string name;  // unique in its registry: "matmul"
  /// Returns the types of the outputs. Throws kInvalidArgument, with the shapes, when the inputs do
  /// not fit (OpInputs::fail).
  std::function<std::vector<ValueType>(const OpInputs&)> infer;
  /// Adds nodes that compute the gradients of the inputs from the gradients of the outputs, and
  /// returns one Gradient per input: `return std::vector<Gradient>{dx, dy};`, where a Value stands
  /// for a dense gradient. An output gradient that is no value stands for zero. Without this
  /// function the op has no gradient, and `no_gradient` says why.
  std::function<std::vector<Gradient>(const Node&, std::span<const Value> output_gradients)>
      gradient;
  std::string no_gradient;  // the reason: "its output is an integer"
  /// Returns the cost of one execution, from the shapes. Without this function the cost is one
  /// operation for each element of the outputs, and the bytes of all inputs and outputs.
  std::function<Cost(const Node&)> cost;

  /// The kernel of an op defined outside the library, for every CPU-like device. The library's own
  /// ops leave it empty: their kernels are in kernels/.
  KernelFunction kernel;

  /// Returns CUDA source for `--device cuda`, for an op defined outside the library. The source is
  /// a function `extern "C" __global__ void kernel(outputs…, inputs…, long long n)`, whose outputs
  /// and inputs are pointers. Some threads run the function at once; together they must compute all
  /// n elements of output 0, unless n is 0. Before the text stand `i64` (long long) and `EACH(i,
  /// n)`, a loop that gives each index to one thread; `larger`, `block_sum`, `block_max` and
  /// `in_range` are names that it must not use. Without this function, or where its text is empty,
  /// the op's `kernel` runs on the host, on copies.
  std::function<std::string(const Node&)> cuda_source;

  /// The inputs whose memory output 0 may take: the kernel gives the same result when it writes
  /// output 0 over one of these inputs. If one value is several inputs of a node, its memory is
  /// taken only if all of these inputs are listed.
  std::vector<int> in_place;
  /// For an op whose outputs are parts of input 0: returns the element of input 0 at which the
  /// output begins, or −1 when the output's elements do not lie there in their order. A plan runs
  /// no kernel for the op where other kernels can read the output in that place. If the output is
  /// all of input 0 under another shape, no kernel is ever run.
  std::function<std::int64_t(const Node&, int output)> view;
  /// For an op that joins its inputs: returns the element of output 0 at which the input begins, or
  /// −1 when the input's elements do not lie there in their order. If all inputs lie in their
  /// order, plans let other kernels write the inputs to that place, where they can, and run no
  /// kernel of this op.
  std::function<std::int64_t(const Node&, int input)> concat_offset;
  /// True for an op that draws random numbers or has an effect. Its nodes are never merged, folded
  /// or dropped.
  bool stateful = false;
  /// For an op whose kernel waits for input from outside: waits until one of these nodes could run
  /// without a wait, and returns the index of that node among them. So a plan runs each node, a
  /// gradient for example, as soon as its input is there, and contributes its output. The nodes
  /// must not depend on one another. A value that one of them reads and that a kernel has made must
  /// live until all of them have run: some node that follows them all must read it, too.
  std::function<std::size_t(std::span<const Node* const>)> first_to_come;
  /// True when the kernel can leave output 0 in memory that holds this output already
  /// (KernelCall::lent).
  bool lends = false;
};

/// The ops that a graph may use.
class OpRegistry {
 public:
  /// Adds an op. Throws kInvalidArgument when the name is taken, when infer is missing, or when
  /// neither gradient nor no_gradient is given.
  const Op& add(Op op);
  /// True when there is an op of this name.
  bool contains(std::string_view name) const { return ops_.contains(name); }
  /// The op of this name. Throws kNotFound, with the nearest name.
  const Op& find(std::string_view name) const;
  /// All ops in the order of their names. They belong to the registry.
  std::vector<const Op*> all() const;

 private:
  std::map<std::string, std::unique_ptr<Op>, std::less<>> ops_;
};

/// The library's ops, in a registry that never changes.
const OpRegistry& builtin_ops();
/// A new registry with the library's ops, to which others can be added.
OpRegistry copy_of_builtin_ops();
/// Adds an op of your own, which must have a kernel, to `registry`.
const Op& register_op(OpRegistry& registry, Op op);

}  // namespace paceline
