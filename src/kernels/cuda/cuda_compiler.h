// CUDA source to machine code, by NVRTC.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/cuda_calls.h"

namespace paceline {

/// The code of `source` for an architecture such as "sm_90". No driver is needed. Sums and products
/// round as on the host, and numbers below 1.2e-38 are zero. Throws kInternal with the compiler's
/// words.
std::vector<char> cuda_code(const CudaCalls& calls, const std::string& source,
                            const std::string& architecture);

}  // namespace paceline
