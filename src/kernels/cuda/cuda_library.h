// Finds out whether this machine can compute with `--device cuda`, and lists its GPUs.
#pragma once

#include <string>

#include "kernels/cuda/cuda_calls.h"

namespace paceline {

/// The plug-in; null, and `why`, when it is not there.
const CudaPlugin* cuda_plugin(std::string& why);
/// Throws kFailedPrecondition that says what is missing and what to install. The calls live as long
/// as the process.
const CudaCalls& cuda_calls();
/// The GPUs, one a line, such as "cuda:0 NVIDIA H200, 143771 MiB, sm_90"; or a sentence that says
/// why none can be used.
std::string cuda_devices_in_words();
/// "CUDA_VISIBLE_DEVICES=4,5", which hides the other GPUs; empty when it is not set.
std::string cuda_visible_in_words();
/// "sm_90".
std::string cuda_architecture(const CudaCalls& calls, int device);
/// The words of a failed call of the driver.
std::string cuda_error_text(const CudaCalls& calls, CudaCalls::Status status);

}  // namespace paceline
