// Which instruction set computes: that of our vectorised kernels (Highway chooses it when the
// program runs) and that of oneDNN.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

/// "AVX-512", "AVX2", "SSE4", "SSSE3", … of our kernels; "scalar" on a machine with none of them.
std::string_view instruction_set();
/// Those that this machine has and our kernels were compiled for, the best first; "scalar" last.
std::vector<std::string_view> instruction_sets();
/// From now on our kernels in this process use no better one than `name`; false when this machine
/// has no such one. Not while a kernel runs.
bool limit_instruction_set(std::string_view name);

/// "2.6.3".
std::string onednn_version();
/// "avx512_core_bf16"; what oneDNN computes with.
std::string_view onednn_instruction_set();
/// Whether this machine has instructions for products of bfloat16, which oneDNN uses: about twice
/// as fast as in float32. Without them oneDNN has no such products, or slow ones.
bool can_multiply_bfloat16();
/// The same limit for oneDNN, whose lowest is SSE4; false once it has computed anything.
bool limit_onednn_instruction_set(std::string_view name);

}  // namespace paceline
