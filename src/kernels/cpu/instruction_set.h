// The instruction set that computes: that of our vectorised kernels (Highway chooses it when the
// program runs) and that of oneDNN.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "paceline/tensor.h"

namespace paceline {

/// "AVX-512", "AVX2", "SSE4", "SSSE3", … of our kernels; "scalar" on a machine with none of them.
std::string_view instruction_set();
/// Those that this machine has and our kernels were compiled for, the best first; "scalar" last.
std::vector<std::string_view> instruction_sets();
/// From now on our kernels in this process use no better one than `name`; false, and nothing
/// changes, when this machine has no such one. Not while a kernel runs.
bool limit_instruction_set(std::string_view name);

/// "2.6.3".
std::string onednn_version();
/// "avx512_core_bf16"; what oneDNN computes with.
std::string_view onednn_instruction_set();
/// True when oneDNN's products read operands where they lie, however badly they lie (TileBlocks),
/// because it computes with AVX or AVX2.
bool onednn_reads_in_place();
/// The type in which products of operands that are rounded to `precision` are computed: bfloat16
/// only where that is faster, with AMX, or with AVX512-BF16 on a processor that runs it as often as
/// a multiply-add. Intel's run it half as often: no more FLOP/s than in float32 (281 and 281
/// GFLOP/s on a core of an Emerald Rapids, in registers; in oneDNN's products 80 and 148).
DType product_dtype(DType precision);
/// The same limit for oneDNN, whose lowest is SSE4; false once it has computed anything.
bool limit_onednn_instruction_set(std::string_view name);

}  // namespace paceline
