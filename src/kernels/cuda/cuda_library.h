// Finds out whether this machine can compute with `--device cuda`, and lists its GPUs.
#pragma once

#include <string>

#include "kernels/cuda/cuda_calls.h"

namespace paceline {

/// Returns the plug-in; null, and the reason in `why`, if it does not exist.
const CudaPlugin* cuda_plugin(std::string& why);
/// Returns the calls of a machine that can compute with CUDA; they live as long as the process.
/// Throws kFailedPrecondition, which says what is missing and what to install, on other machines.
const CudaCalls& cuda_calls();
/// Returns the GPUs, one per line, such as "cuda:0 NVIDIA H200, 143771 MiB, sm_90"; or a sentence
/// that says why none can be used.
std::string cuda_devices_in_words();
/// Returns a text such as "CUDA_VISIBLE_DEVICES=4,5", which hides the other GPUs; empty if the
/// variable is not set.
std::string cuda_visible_in_words();
/// Returns the name of a GPU's architecture, such as "sm_90".
std::string cuda_architecture(const CudaCalls& calls, int device);
/// Returns the message of a failed driver call.
std::string cuda_error_text(const CudaCalls& calls, CudaCalls::Status status);

}  // namespace paceline
