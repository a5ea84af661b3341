// Kernels: the functions that compute nodes on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>

#include "paceline/graph.h"
#include "paceline/tensor.h"

namespace paceline {

/// The identity of a step. The numbers of random ops are a function of it, never of threads or
/// time.
struct StepIdentity {
  std::uint64_t seed = 0;  // the seed of the run
  std::int64_t task = 0;   // the worker's index
  std::int64_t step = 0;   // the task's own step
};

/// A receiver of an output that arrives range by range, while it is in the cache, so that no memory
/// holds the output as a whole.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// Takes elements [first, first + values.size()) of the row-major output. Every element arrives
  /// once a step. Several threads may call at once, with different ranges. `values` is valid during
  /// the call.
  virtual void take(std::int64_t first, std::span<const float> values) = 0;
};

/// The other parts of a batch that several devices or tasks compute at once. A kernel whose numbers
/// are to be those of the whole batch adds them up with theirs in the middle of a step.
class SumExchange {
 public:
  virtual ~SumExchange() = default;
  /// Replaces the numbers by their sums over all parts of the batch, which have the same bits
  /// everywhere. Waits for the other parts, which make the same calls in the same order. An
  /// exception ends the step.
  virtual void add_up(std::span<double> sums) = 0;
};

/// The threads of the device that runs a kernel.
class KernelThreads {
 public:
  virtual ~KernelThreads() = default;
  /// Returns how many there are, the calling one included.
  virtual int count() const = 0;
  /// Calls call(object, begin, end) for ranges of about `grain` or more that make up [0, n), on any
  /// threads at once, and returns when all have returned. Throws the first exception of a range.
  virtual void run(std::int64_t n, std::int64_t grain, void* object,
                   void (*call)(void*, std::int64_t, std::int64_t)) = 0;
};

/// One execution of a node. The views are row-major and valid during the call.
struct KernelCall {
  std::span<const TensorView> inputs;   // in the order of the node's inputs; not to be written
  std::span<const TensorView> outputs;  // in the order of the node's outputs; to be written whole
  /// Memory of scratch_bytes() bytes, 64-byte aligned, with undefined content.
  std::span<std::byte> scratch;
  StepIdentity step;  // the step, for random ops
  /// The receiver of output 0 after Kernel::stream_output(); outputs[0] then has no memory.
  OutputSink* sink = nullptr;
  /// Not null where output 0 may stay in other memory, which nobody writes or frees before the step
  /// has ended: its address is put here, and outputs[0] is not written (Op::lends).
  void** lent = nullptr;
  /// The device's threads, for kernels of ops defined outside the library; may be null.
  KernelThreads* threads = nullptr;
  /// The other parts of the batch, for batch norm; null when the statistics are those of this part.
  SumExchange* exchange = nullptr;

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

/// The kernel of one node. It is made once per plan, and its constructor makes whatever tables it
/// needs.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Asks the kernel, before scratch_bytes() is called, to give output 0 (float32) to
  /// KernelCall::sink in every run. Returns false when the kernel gives its output only as a whole.
  virtual bool stream_output() { return false; }
  /// The number of bytes of KernelCall::scratch that run() needs.
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Computes the node. It must allocate no memory.
  virtual void run(const KernelCall& call) = 0;
};

/// The simple form of a kernel, for ops defined outside the library.
using KernelFunction = std::function<void(const Node&, const KernelCall&)>;

}  // namespace paceline
