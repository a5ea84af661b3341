// The instruction sets in use: that of our vectorised kernels (Highway chooses it when the program
// runs) and that of oneDNN.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "paceline/tensor.h"

namespace paceline {

/// The set of our kernels: "AVX-512", "AVX2", "SSE4", "SSSE3", …; "scalar" on a machine with none
/// of them.
std::string_view instruction_set();
/// The sets that this machine has and our kernels were compiled for, the best first; "scalar" last.
std::vector<std::string_view> instruction_sets();
/// From now on, our kernels in this process use no set better than `name`. Returns false, and
/// changes nothing, if this machine does not have it. Do not call it while a kernel runs.
bool limit_instruction_set(std::string_view name);

/// Returns a version such as "2.6.3".
std::string onednn_version();
/// Returns what oneDNN computes with, such as "avx512_core_bf16".
std::string_view onednn_instruction_set();
/// True if oneDNN's products read operands in place, even with an unfavourable layout (TileBlocks),
/// because it computes with AVX or AVX2.
bool onednn_reads_in_place();
/// Returns the type in which products of operands rounded to `precision` are computed. It is
/// bfloat16 only if that is faster: with AMX, or with AVX512-BF16 on a processor that runs it as
/// often as a multiply-add. Intel's processors run it half as often, so bfloat16 gives no more
/// FLOP/s than float32. On a core of an Emerald Rapids, both reach 281 GFLOP/s in registers; in
/// oneDNN's products, bfloat16 reaches 80 and float32 148.
DType product_dtype(DType precision);
/// Limits oneDNN's instruction set as limit_instruction_set limits ours; the lowest is SSE4.
/// Returns false if oneDNN has already computed something.
bool limit_onednn_instruction_set(std::string_view name);

}  // namespace paceline
