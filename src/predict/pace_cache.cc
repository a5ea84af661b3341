#include "predict/pace_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/text_file.h"
#include "paceline/error.h"
#include "paceline/version.h"

namespace paceline {
namespace {

using PaceJson = nlohmann::json;

PaceJson read_paces(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  PaceJson object =
      PaceJson::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
  const bool known = object.is_object() &&
                     object.value("processor", PaceJson()) == PaceJson(processor_name()) &&
                     object.contains("paces") && object["paces"].is_object();
  return known ? object["paces"] : PaceJson::object();
}

}  // namespace

std::string pace_key(const Plan& plan, DType precision) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 1099511628211u;
  };
  for (const Plan::KernelUse& use : plan.kernels) {
    const Cost cost = use.node->op().cost(*use.node);
    mix(fmt::format("{} {} {};", use.node->op().name, cost.flops, cost.bytes));
  }
  return fmt::format("{:016x} {}", hash, name_of(precision));
}

std::optional<Pace> PaceCache::find(const std::string& key, int threads) const {
  if (file_.empty()) return std::nullopt;
  std::optional<Pace> best;
  const std::string begin = key + ' ';
  const PaceJson paces = read_paces(file_);  // it must outlive what iterates over it
  for (const auto& [name, value] : paces.items()) {
    if (!name.starts_with(begin) || !value.is_number()) continue;
    const Pace pace{std::atoi(name.c_str() + begin.size()), value.get<double>()};
    if (pace.threads <= 0 || pace.seconds <= 0) continue;
    if (pace.threads == threads) return pace;
    if (!best || pace.threads < best->threads) best = pace;
  }
  return best;
}

void PaceCache::keep(const std::string& key, const Pace& pace) const {
  if (file_.empty()) return;
  PaceJson paces = read_paces(file_);
  paces[fmt::format("{} {}", key, pace.threads)] = pace.seconds;
  std::error_code ignored;  // what fails is seen when the file is written
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  try {
    const PaceJson object = {{"processor", processor_name()}, {"paces", paces}};
    write_text_file("the pace of steps", file_,
                    object.dump(2, ' ', false, PaceJson::error_handler_t::replace) + "\n");
  } catch (const Error&) {
    // It is measured again next time.
  }
}

}  // namespace paceline
