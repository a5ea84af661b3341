// A oneDNN primitive with memory objects of its own, made once and run with other addresses in each
// call. For .cc files only.
#pragma once

#include <array>
#include <cstddef>
#include <dnnl.hpp>
#include <utility>

#include "base/allocation_scope.h"
#include "kernels/cpu/one_thread.h"

namespace paceline {

template <std::size_t N>
class OneDnnCall {
 public:
  using Operand = std::pair<int, dnnl::memory::desc>;  // DNNL_ARG_…

  OneDnnCall(dnnl::primitive primitive, const dnnl::engine& engine,
             const std::array<Operand, N>& operands)
      : primitive_(std::move(primitive)), stream_(engine) {
    for (std::size_t i = 0; i < N; ++i) {
      memories_[i] = dnnl::memory(operands[i].second, engine, DNNL_MEMORY_NONE);
      arguments_[i] = {operands[i].first, memories_[i].get()};
    }
  }

  /// On the calling thread alone. Through oneDNN's C interface: the C++ one would build a map and a
  /// vector in each call. oneDNN takes what it only reads as if it wrote it.
  dnnl_status_t run(const void* const (&addresses)[N]) {
    const OneThread guard;
    const ForeignAllocations scope;
    for (std::size_t i = 0; i < N; ++i) {
      dnnl_memory_set_data_handle(memories_[i].get(), const_cast<void*>(addresses[i]));
    }
    return dnnl_primitive_execute(primitive_.get(), stream_.get(), N, arguments_.data());
  }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::array<dnnl::memory, N> memories_;
  std::array<dnnl_exec_arg_t, N> arguments_;
};

}  // namespace paceline
