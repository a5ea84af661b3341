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
  std::uint64_t seed = 0;
  std::int64_t task = 0;  // the worker's index
  std::int64_t step = 0;  // the task's own step
};

/// One execution of a node. Views are row-major and valid during the call.
struct KernelCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  /// scratch_bytes() of memory, 64-byte aligned, with nothing in it that can be relied on.
  std::span<std::byte> scratch;
  StepIdentity step;
};

/// The kernel of one node, made once per plan: primitives and tables are made in its constructor.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Allocates nothing.
  virtual void run(const KernelCall& call) = 0;
};

/// The simple form of a kernel, for ops defined outside the library.
using KernelFunction = std::function<void(const Node&, const KernelCall&)>;

}  // namespace paceline
