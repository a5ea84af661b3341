#include "tests/fakes/cuda_emulator.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace paceline::testing {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr unsigned kWarp = 32;

// This is not thread-local, since a fiber may continue in another thread.
CudaEmulator* running = nullptr;

}  // namespace

struct CudaEmulator::Fiber {
  unsigned index = 0;
  bool begun = false, done = true;
  std::unique_ptr<char[]> stack;
  ucontext_t context;
  jmp_buf inside;
  void* fake_stack = nullptr;  // AddressSanitizer's
};

CudaEmulator::CudaEmulator() = default;
CudaEmulator::~CudaEmulator() = default;

unsigned CudaEmulator::lanes_of(unsigned warp) const {
  return std::min(kWarp, threads_ - warp * kWarp);
}

void CudaEmulator::run(const emulated::Kernel& kernel, void** parameters, dim3 grid, dim3 block,
                       std::size_t dynamic_bytes, Schedule schedule) {
  kernel_ = kernel;
  parameters_ = parameters;
  place_.block_size = block;
  place_.grid_size = grid;
  threads_ = block.x * block.y * block.z;
  while (fibers_.size() < threads_) fibers_.push_back(std::make_unique<Fiber>());
  CudaEmulator* const before = std::exchange(running, this);
  try {
    for (unsigned i = 0; i < grid.x * grid.y * grid.z; ++i) {
      place_.block = {i % grid.x, i / grid.x % grid.y, i / (grid.x * grid.y)};
      dynamic_.assign(dynamic_bytes, std::byte{0xff});  // no kernel may count on zeros
      place_.dynamic_memory = dynamic_.data();
      run_block(schedule);
    }
  } catch (...) {
    fibers_.clear();  // they have stopped in the middle of a kernel
    running = before;
    throw;
  }
  running = before;
}

void CudaEmulator::run_block(Schedule schedule) {
  const unsigned warps = (threads_ + kWarp - 1) / kWarp;
  warps_.assign(warps, {});
  block_barrier_ = {};
  living_ = threads_;
  for (unsigned i = 0; i < threads_; ++i) {
    fibers_[i]->index = i;
    fibers_[i]->done = false;
  }
  const std::vector<unsigned> order = order_of(schedule);
  const bool ahead = schedule == Schedule::kFirstWarpAhead || schedule == Schedule::kLastWarpAhead;
  while (living_ > 0) {
    bool moved = false;
    if (!ahead) moved = run_each(order, 0, threads_);
    for (unsigned k = 0; ahead && k < warps; ++k) {
      const unsigned warp = schedule == Schedule::kFirstWarpAhead ? k : warps - 1 - k;
      while (run_each(order, warp * kWarp, warp * kWarp + lanes_of(warp))) moved = true;
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    if (!moved) throw std::logic_error("some threads wait at a barrier that others do not reach");
  }
}

// Lets each of the threads [first, end) run as far as it gets. Returns whether any of them made
// progress.
bool CudaEmulator::run_each(const std::vector<unsigned>& order, unsigned first, unsigned end) {
  moved_ = false;
  for (const unsigned i : order) {
    if (i >= first && i < end && !fibers_[i]->done) enter(*fibers_[i]);
  }
  return moved_;
}

std::vector<unsigned> CudaEmulator::order_of(Schedule schedule) {
  std::vector<unsigned> order(threads_);
  std::iota(order.begin(), order.end(), 0u);
  if (schedule == Schedule::kDescending) std::ranges::reverse(order);
  if (schedule == Schedule::kShuffled || schedule == Schedule::kShuffledOtherwise) {
    for (std::size_t i = order.size(); i > 1; --i) {
      random_ = random_ * 6364136223846793005u + (schedule == Schedule::kShuffled ? 1u : 3u);
      std::swap(order[i - 1], order[(random_ >> 33) % i]);
    }
  }
  return order;
}

void CudaEmulator::wait_at(Barrier& barrier, unsigned all) {
  moved_ = true;
  const std::uint64_t passed = barrier.passed;
  if (++barrier.arrived == all) {
    barrier.arrived = 0;
    ++barrier.passed;
    return;
  }
  while (barrier.passed == passed) leave();
  moved_ = true;
}

std::uint64_t CudaEmulator::exchange(std::uint64_t bytes, unsigned lane) {
  const unsigned own = now_->index % kWarp, lanes = lanes_of(now_->index / kWarp);
  Warp& warp = warps_[now_->index / kWarp];
  warp.bytes[own] = bytes;
  wait_at(warp.barrier, lanes);
  const std::uint64_t got = warp.bytes[lane < lanes ? lane : own];
  wait_at(warp.barrier, lanes);
  return got;
}

// A fiber that has ended starts again as a thread of the next block.
void CudaEmulator::begin_fiber() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &running->outside_stack_, &running->outside_bytes_);
#endif
  while (true) {
    try {
      running->kernel_.call(running->parameters_);
    } catch (...) {
      running->error_ = std::current_exception();
    }
    running->now_->done = true;
    --running->living_;
    running->moved_ = true;
    running->leave();
  }
}

void CudaEmulator::enter(Fiber& fiber) {
  now_ = &fiber;
  const dim3& size = place_.block_size;
  place_.thread = {fiber.index % size.x, fiber.index / size.x % size.y,
                   fiber.index / (size.x * size.y)};
#if defined(__SANITIZE_ADDRESS__)
  void* own_stack = nullptr;
#endif
  if (!fiber.begun) {
    fiber.begun = true;
    fiber.stack.reset(new char[kStackBytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &begin_fiber, 0);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&own_stack, fiber.stack.get(), kStackBytes);
#endif
    if (_setjmp(outside_) == 0) setcontext(&fiber.context);
  } else {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&own_stack, fiber.stack.get(), kStackBytes);
#endif
    if (_setjmp(outside_) == 0) _longjmp(fiber.inside, 1);
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_stack, nullptr, nullptr);
#endif
}

void CudaEmulator::leave() {
  Fiber& fiber = *now_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fiber.fake_stack, outside_stack_, outside_bytes_);
#endif
  if (_setjmp(fiber.inside) == 0) _longjmp(outside_, 1);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &outside_stack_, &outside_bytes_);
#endif
}

const emulated::Calls* CudaEmulator::calls() {
  static const emulated::Calls calls = {
      .place = [] { return static_cast<const emulated::Place*>(&running->place_); },
      .meet_block = [] { running->wait_at(running->block_barrier_, running->threads_); },
      .exchange = [](std::uint64_t bytes, unsigned lane) { return running->exchange(bytes, lane); },
  };
  return &calls;
}

}  // namespace paceline::testing
