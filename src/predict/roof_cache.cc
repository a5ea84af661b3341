#include "predict/roof_cache.h"

#include <algorithm>

namespace paceline {
namespace {

using RoofJson = nlohmann::json;

bool is_of(const RoofJson& entry, DType precision, int threads) {
  return entry.is_object() &&
         entry.value("precision", RoofJson()) == RoofJson(name_of(precision)) &&
         entry.value("threads", RoofJson()) == RoofJson(threads);
}

bool is_rate(const RoofJson& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number() && found->get<double>() > 0;
}

std::optional<Roof> roof_of(const RoofJson& entry) {
  if (!is_rate(entry, "flops_per_s") || !is_rate(entry, "bytes_per_s") ||
      !is_rate(entry, "rule_bytes_per_s") || !is_rate(entry, "cache_bytes")) {
    return std::nullopt;
  }
  // Versions that did not note it may have measured beside other programs.
  const auto others = entry.find("others_share");
  const bool noted = others != entry.end() && others->is_number();
  return Roof{.flops_per_s = entry["flops_per_s"].get<double>(),
              .bytes_per_s = entry["bytes_per_s"].get<double>(),
              .rule_bytes_per_s = entry["rule_bytes_per_s"].get<double>(),
              .link_bytes_per_s = 0,
              .cache_bytes = entry["cache_bytes"].get<std::size_t>(),
              .others_share = noted ? others->get<double>() : 1};
}

RoofJson entry_of(const Roof& roof, DType precision, int threads) {
  return {{"precision", name_of(precision)},           {"threads", threads},
          {"flops_per_s", roof.flops_per_s},           {"bytes_per_s", roof.bytes_per_s},
          {"rule_bytes_per_s", roof.rule_bytes_per_s}, {"cache_bytes", roof.cache_bytes},
          {"others_share", roof.others_share}};
}

void take_higher(Roof& roof, const std::optional<Roof>& kept) {
  if (!kept) return;
  roof.flops_per_s = std::max(roof.flops_per_s, kept->flops_per_s);
  roof.bytes_per_s = std::max(roof.bytes_per_s, kept->bytes_per_s);
  roof.rule_bytes_per_s = std::max(roof.rule_bytes_per_s, kept->rule_bytes_per_s);
  roof.others_share = std::min(roof.others_share, kept->others_share);
}

}  // namespace

std::optional<Roof> RoofCache::find(DType precision, int threads) const {
  const RoofJson roofs = file_.read();
  for (const RoofJson& entry : roofs) {
    if (is_of(entry, precision, threads)) return roof_of(entry);
  }
  return std::nullopt;
}

Roof RoofCache::measure(DType precision, int threads) const {
  Roof roof = measure_(precision, threads);
  file_.change([&](const RoofJson& kept) {
    RoofJson roofs = RoofJson::array();
    for (const RoofJson& entry : kept) {
      if (is_of(entry, precision, threads)) {
        take_higher(roof, roof_of(entry));
      } else {
        roofs.push_back(entry);
      }
    }
    roofs.insert(roofs.begin(), entry_of(roof, precision, threads));
    return roofs;
  });
  return roof;
}

Roof RoofCache::roof(DType precision, int threads) const {
  const std::optional<Roof> kept = find(precision, threads);
  if (kept && !is_beside_others(kept->others_share)) return *kept;
  return measure(precision, threads);
}

}  // namespace paceline
