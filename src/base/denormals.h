// Numbers too small for float32's full precision (below 1.2e-38) count as zero where Paceline
// computes. Processors take some hundred cycles for each, and the gradients of a softmax that is
// sure of its answer are full of them: they made a step of the model ptb small 4 times as long.
// TensorFlow's kernels do the same.
#pragma once

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace paceline {

/// While an object lives, its thread reads and writes denormals as zeros. Scopes may nest.
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
