// Nothing is compiled with -march=native: Highway and oneDNN choose their instruction sets when the
// program runs, and `paceline version` names both. Tests run the kernels with every set that the
// machine has, and with none (kernels_with_*).
#include "kernels/cpu/instruction_set.h"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

namespace paceline {

namespace {

std::string_view name_of_target(std::int64_t target) {
  switch (target) {
    case HWY_AVX3_DL:
      return "AVX-512-DL";
    case HWY_AVX3:
      return "AVX-512";
    case HWY_SCALAR:
    case HWY_EMU128:
      return "scalar";
    default:
      return hwy::TargetName(target);
  }
}

// Highway's better targets have the lower bits.
std::vector<std::int64_t> usable_targets() {
  std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  if (targets.empty() || targets.back() != HWY_STATIC_TARGET) targets.push_back(HWY_STATIC_TARGET);
  return targets;
}

bool is_intel() {
#if HWY_ARCH_X86
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

bool onednn_has(unsigned isa) { return (unsigned(dnnl_get_effective_cpu_isa()) & isa) == isa; }

dnnl_cpu_isa_t onednn_limit(std::string_view name) {
  if (name == "AVX-512-DL") return dnnl_cpu_isa_all;
  if (name == "AVX-512") return dnnl_cpu_isa_avx512_core;
  return name == "AVX2" ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41;
}

}  // namespace

std::string_view instruction_set() { return instruction_sets().front(); }

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  for (const std::int64_t target : usable_targets()) names.push_back(name_of_target(target));
  return names;
}

bool limit_instruction_set(std::string_view name) {
  const std::int64_t before = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);
  const std::vector<std::int64_t> targets = usable_targets();
  const auto limit = std::ranges::find(targets, name, name_of_target);
  const std::int64_t allowed =
      std::accumulate(limit, targets.end(), std::int64_t{0}, std::bit_or());
  hwy::SetSupportedTargetsForTest(limit == targets.end() ? before : allowed);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return limit != targets.end();
}

std::string onednn_version() {
  const dnnl_version_t* version = ::dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::string_view onednn_instruction_set() {
  constexpr std::string_view kPrefix = "cpu_isa_";
  std::string_view name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return name;
}

bool onednn_reads_in_place() {
  return onednn_has(dnnl_cpu_isa_avx) && !onednn_has(dnnl_cpu_isa_avx512_core);
}

DType product_dtype(DType precision) {
  const bool fast = onednn_has(dnnl_cpu_isa_avx512_core_amx) ||
                    (onednn_has(dnnl_cpu_isa_avx512_core_bf16) && !is_intel());
  return precision == DType::kBFloat16 && !fast ? DType::kFloat32 : precision;
}

bool limit_onednn_instruction_set(std::string_view name) {
  return dnnl_set_max_cpu_isa(onednn_limit(name)) == dnnl_success;
}

}  // namespace paceline
