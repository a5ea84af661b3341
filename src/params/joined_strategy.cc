#include "params/joined_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/crc32c.h"
#include "params/strategy/strategies.h"
#include "params/strategy/strategy_fields.h"

namespace paceline {
namespace {

// A hello has a line for each name of the data. If the lines take more than kMostText bytes, or one
// of them more than kMostOfLine, the hello has at most kDigests digests of groups of lines instead,
// so that it stays small.
constexpr std::size_t kMostText = std::size_t{1} << 19, kMostOfLine = 1000;
constexpr std::size_t kDigests = 1024;

const char* name_of(OnNan on_nan) {
  if (on_nan == OnNan::kStop) return "stop";
  return on_nan == OnNan::kSkip ? "skip" : "apply";
}

std::vector<std::string> lines_of(const std::string& kind, const std::vector<std::string>& names) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < names.size(); ++i) {
    lines.push_back(fmt::format("number {} of the {}\t'{}'", i, kind, names[i]));
  }
  return lines;
}

// Returns a digest of each group of consecutive names, as a line.
std::vector<std::string> digests_of(const std::string& kind,
                                    const std::vector<std::string>& names) {
  std::vector<std::string> lines;
  const std::size_t together = names.size() / kDigests + 1;
  for (std::size_t i = 0; i < names.size(); i += together) {
    const std::size_t end = std::min(names.size(), i + together);
    std::uint32_t digest = 0;
    for (std::size_t k = i; k < end; ++k) {
      digest = crc32c(std::as_bytes(std::span(names[k].c_str(), names[k].size() + 1)), digest);
    }
    lines.push_back(
        fmt::format("digest of numbers {} to {} of the {}\t{:08x}", i, end - 1, kind, digest));
  }
  return lines;
}

bool is_long(const std::vector<std::string>& lines) {
  std::size_t bytes = 0;
  for (const std::string& line : lines) {
    if (line.size() > kMostOfLine) return true;
    bytes += line.size();
  }
  return bytes > kMostText;
}

}  // namespace

std::vector<std::string> agreed_flags(const Cluster& cluster, std::uint64_t seed,
                                      const AgreedData& data) {
  std::vector<std::string> all;
  const auto add = [&](const char* flag, const auto& value) {
    all.push_back(fmt::format("{}\t{}", flag, value));
  };
  add("--strategy", strategy_name(cluster));
  for (const StrategyField& field : strategy_fields()) {
    add(field.flag, field.agreed_text(cluster.strategy));
  }
  add("--accumulate", cluster.train.accumulate);
  add("--shard", cluster.train.sharding == Sharding::kDynamic ? "dynamic" : "static");
  add("--sync-batch-norm", cluster.train.sync_batch_norm ? "given" : "not given");
  add("--on-nan", name_of(cluster.train.on_nan));
  add("--collectives", cluster.links.collectives);
  add("--tls", cluster.links.security.tls == Tls::kAlways ? "on" : "off-host");
  add("--insecure", cluster.links.security.tls == Tls::kNever ? "given" : "not given");
  add("--seed", seed);
  for (const auto& [what, value] : data.others) add(what.c_str(), value);
  // The number is agreed on only with shared records: otherwise each worker may hold its own part
  // of the data.
  if (cluster.shares_records()) add("number of records", data.records);
  for (const auto& [kind, names] : data.names) {
    std::vector<std::string> lines = lines_of(kind, names);
    if (is_long(lines)) lines = digests_of(kind, names);
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

}  // namespace paceline
