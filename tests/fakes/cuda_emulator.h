// Runs kernels that were compiled for the host. The threads of a block are fibers in one thread of
// the system, and blocks run one after another. Weak memory order, tensor cores and the accuracy of
// CUDA's own functions are not emulated.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "tests/fakes/cuda_on_host.h"

namespace paceline::testing {

/// The orders in which threads run between two barriers. The last two let one warp run as far as it
/// can before the next one begins, which exposes a missing wait of another warp.
enum class Schedule : std::uint8_t {
  kAscending,
  kDescending,
  kShuffled,
  kShuffledOtherwise,
  kFirstWarpAhead,
  kLastWarpAhead,
  kCount,
};

/// A process can run one emulator at a time.
class CudaEmulator {
 public:
  CudaEmulator();
  ~CudaEmulator();
  /// Returns when all blocks have run. Throws std::logic_error if some threads wait at a barrier
  /// that the other threads do not reach.
  void run(const emulated::Kernel& kernel, void** parameters, dim3 grid, dim3 block,
           std::size_t dynamic_bytes, Schedule schedule);
  /// Returns the functions that kernels call.
  static const emulated::Calls* calls();

 private:
  struct Fiber;
  struct Barrier {
    unsigned arrived = 0;
    std::uint64_t passed = 0;
  };
  struct Warp {
    Barrier barrier;
    std::uint64_t bytes[32] = {};
  };

  void run_block(Schedule schedule);
  bool run_each(const std::vector<unsigned>& order, unsigned first, unsigned end);
  std::vector<unsigned> order_of(Schedule schedule);
  void enter(Fiber& fiber);
  void leave();
  void wait_at(Barrier& barrier, unsigned all);
  std::uint64_t exchange(std::uint64_t bytes, unsigned lane);
  unsigned lanes_of(unsigned warp) const;
  static void begin_fiber();

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  std::vector<std::byte> dynamic_;
  Barrier block_barrier_;
  emulated::Place place_;
  emulated::Kernel kernel_{};
  void** parameters_ = nullptr;
  Fiber* now_ = nullptr;
  unsigned threads_ = 0, living_ = 0;
  std::uint64_t random_ = 1;
  bool moved_ = false;
  jmp_buf outside_;
  const void* outside_stack_ = nullptr;  // for AddressSanitizer
  std::size_t outside_bytes_ = 0;
  std::exception_ptr error_;
};

}  // namespace paceline::testing
