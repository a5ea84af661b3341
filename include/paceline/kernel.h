// What computes a node on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>

#include "paceline/graph.h"
#include "paceline/tensor.h"

namespace paceline {

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

/// The threads of the device that runs a kernel.
class KernelThreads {
 public:
  virtual ~KernelThreads() = default;
  /// How many there are, the calling one included.
  virtual int count() const = 0;
  /// Calls call(object, begin, end) for ranges of about `grain` or more that make up [0, n), on any
  /// threads at once, and returns when all have returned. Throws the first exception of a range.
  virtual void run(std::int64_t n, std::int64_t grain, void* object,
                   void (*call)(void*, std::int64_t, std::int64_t)) = 0;
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
  /// The device's threads, for kernels of ops defined outside the library; may be null.
  KernelThreads* threads = nullptr;

  /// Calls function(begin, end) for ranges of about `grain` or more that make up [0, n), on the
  /// device's threads at once: each range must be written by its own call only. Allocates nothing.
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
