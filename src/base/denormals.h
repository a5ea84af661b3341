// Numbers too small for float32's full precision (below 1.2e-38) count as zero where Paceline
// computes: processors take some hundred cycles for each, and gradients of a softmax that is sure
// of itself are full of them (a step of ptb small that took 4 times as long). TensorFlow's kernels
// do the same.
#pragma once

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace paceline {

/// While it lives, this thread reads and writes denormals as zeros; then as before. Nests.
class FlushDenormals {
 public:
#ifdef __x86_64__
  FlushDenormals() : before_(_mm_getcsr()) {
    if (before_ != (before_ | kFlush)) _mm_setcsr(before_ | kFlush);
  }
  ~FlushDenormals() {
    if (before_ != (before_ | kFlush)) _mm_setcsr(before_);
  }
#else
  FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#ifdef __x86_64__
  static constexpr unsigned kFlush = 0x8040;  // results (FTZ) and operands (DAZ)
  const unsigned before_;
#endif
};

}  // namespace paceline
