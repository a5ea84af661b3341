// What computes a node on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "paceline/graph.h"
#include "paceline/tensor.h"

namespace paceline {

class ThreadPool;

/// What random ops draw from: a function of these alone, never of threads or time.
struct StepIdentity {
  std::uint64_t seed = 0;  // of the run
  std::int64_t task = 0;   // the worker's index
  std::int64_t step = 0;   // the task's own step
};

/// Takes an output range by range while it is in the cache, in place of memory for all of it.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// Elements [first, first + values.size()) of the row-major output. Every element comes once a
  /// step; threads may call at once with ranges of their own. `values` is valid during the call.
  virtual void take(std::int64_t first, std::span<const float> values) = 0;
};

/// One execution of a node. Views are row-major and valid during the call.
struct KernelCall {
  std::span<const TensorView> inputs;   // in the order of the node's inputs; not to be written
  std::span<const TensorView> outputs;  // in the order of the node's outputs; to be written whole
  /// scratch_bytes() of memory, 64-byte aligned, with nothing in it that can be relied on.
  std::span<std::byte> scratch;
  StepIdentity step;  // for random ops
  /// Where output 0 goes after Kernel::stream_output(); outputs[0] has no memory then.
  OutputSink* sink = nullptr;
};

/// The kernel of one node, made once per plan: primitives and tables are made in its constructor.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Asks, before scratch_bytes() is called, that output 0 (float32) goes to KernelCall::sink in
  /// every run. False: this kernel gives its output as a whole.
  virtual bool stream_output() { return false; }
  /// Bytes of KernelCall::scratch that run() needs.
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Allocates nothing.
  virtual void run(const KernelCall& call) = 0;
};

/// The simple form of a kernel, for ops defined outside the library.
using KernelFunction = std::function<void(const Node&, const KernelCall&)>;

}  // namespace paceline
