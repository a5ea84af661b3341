#include "paceline/version.h"

#include <fmt/format.h>
#include <generated/commit.h>

#include <fstream>
#include <vector>

#include "base/cores.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cuda/cuda_library.h"

namespace paceline {

namespace {

// The instruction sets that decide which kernels run and how fast.
constexpr std::string_view kInstructionSets[] = {
    "sse4_2",   "avx",      "f16c",     "fma",         "avx2",        "avx_vnni",
    "avx512f",  "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_bf16", "asimd",    "sve"};

// Returns the value of the line "key : value" for the first processor; empty if the machine does
// not tell it.
std::string cpu_info(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos && colon + 2 <= line.size()) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

std::string processor_flags() {
  const std::string flags = " " + cpu_info("flags") + cpu_info("Features") + " ";
  std::vector<std::string_view> present;
  for (const std::string_view name : kInstructionSets) {
    if (flags.find(fmt::format(" {} ", name)) != std::string::npos) present.push_back(name);
  }
  return fmt::format("{}", fmt::join(present, " "));
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

std::string version_and_commit() { return fmt::format("{} {}", kVersion, kCommit); }

std::string processor_name() { return cpu_info("model name"); }

std::string version_text() {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  add("paceline", kVersion);
  add("commit", kCommit);
  add("compiler", compiler());
  add("oneDNN", fmt::format("{} ({})", onednn_version(), onednn_instruction_set()));
  add("kernels", std::string(instruction_set()));
  add("CPU", processor_name());
  add("cores", std::to_string(usable_cores()));
  add("instruction sets", processor_flags());
  add("devices", "cpu:0 sim");
  add("GPUs", cuda_devices_in_words());
  add("links", "inproc shm tcp");
  return text;
}

}  // namespace paceline
