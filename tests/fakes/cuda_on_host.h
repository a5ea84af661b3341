// The text that precedes a CUDA kernel's source when it is compiled for the host (fake_nvrtc.cc).
// The emulator (cuda_emulator.h) runs each thread of a block as a fiber, and provides these calls.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace emulated {

/// The place of a thread in its block and in the grid, and the block's dynamic memory.
struct Place {
  dim3 thread, block, block_size, grid_size;
  void* dynamic_memory;
};

struct Calls {
  const Place* (*place)();
  /// Returns once all threads of the block have called it.
  void (*meet_block)();
  /// Returns, once all threads of the warp have called it, the 8 bytes that the thread of `lane`
  /// passed; if the warp has no such thread, the caller's own bytes.
  uint64_t (*exchange)(uint64_t bytes, unsigned lane);
};

/// A kernel of a module, as the fake driver finds it by its name.
struct Kernel {
  const size_t* sizes;  // of its parameters
  size_t count;
  void (*call)(void** parameters);
};

inline const Calls* calls = nullptr;

template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <size_t... I>
struct MakeIndices<0, I...> {
  using Type = Indices<I...>;
};

template <auto function, typename... P, size_t... I>
Kernel kernel_of(void (*)(P...), Indices<I...>) {
  static const size_t sizes[] = {sizeof(P)..., 0};
  return {sizes, sizeof...(P),
          [](void** parameters) { function(*static_cast<P*>(parameters[I])...); }};
}
template <auto function, typename... P>
Kernel kernel_of(void (*pointer)(P...)) {
  return kernel_of<function>(pointer, typename MakeIndices<sizeof...(P)>::Type());
}

template <typename T>
T exchanged(T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bytes = 0;
  memcpy(&bytes, &value, sizeof(T));
  bytes = calls->exchange(bytes, lane);
  memcpy(&value, &bytes, sizeof(T));
  return value;
}

}  // namespace emulated

extern "C" inline void paceline_emulated_calls(const emulated::Calls* given) {
  emulated::calls = given;
}

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
// Blocks run one after another.
#define __shared__ static
#define threadIdx (emulated::calls->place()->thread)
#define blockIdx (emulated::calls->place()->block)
#define blockDim (emulated::calls->place()->block_size)
#define gridDim (emulated::calls->place()->grid_size)

struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline void __syncthreads() { emulated::calls->meet_block(); }
inline void __syncwarp(unsigned = ~0u) { emulated::calls->exchange(0, 0); }
inline unsigned emulated_lane() {
  const emulated::Place& place = *emulated::calls->place();
  return (place.thread.x +
          place.block_size.x * (place.thread.y + place.block_size.y * place.thread.z)) %
         32;
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated::exchanged(value, emulated_lane() ^ unsigned(mask));
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned by) {
  return emulated::exchanged(value, emulated_lane() + by);
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulated::exchanged(value, unsigned(lane));
}
template <typename T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}
template <typename T>
T atomicMin(T* to, T value) {
  const T before = *to;
  if (value < before) *to = value;
  return before;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits = 0;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x = 0;
  memcpy(&x, &bits, sizeof(x));
  return x;
}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
// Rounds twice, since some processors lack the instruction that rounds once.
#define fmaf(a, b, c) ((a) * (b) + (c))
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
