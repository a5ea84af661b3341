#include "bench/cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "bench/collective_rates.h"
#include "bench/executor_rates.h"
#include "bench/fetch_rates.h"
#include "bench/input_rates.h"
#include "bench/kernel_rates.h"
#include "bench/link_rates.h"
#include "bench/roof.h"
#include "bench/rule_rates.h"
#include "paceline/error.h"

namespace paceline::bench {
namespace {

constexpr Case kCases[] = {
    {"roof", "What this machine can do: products, memory, links", measure_roof},
    {"links", "Every link, compared with a bare socket or a bare ring in memory", measure_links},
    {"fetch", "What fetching a small variable adds, compared with bare loops of the same bytes",
     measure_fetch},
    {"collectives", "All-reduce by engine, processes and size, compared with memory's copy rate",
     measure_collectives},
    {"rules", "Every update rule, compared with the rate of memory", measure_rules},
    {"kernels", "The main ops in the workloads' shapes, compared with the roof", measure_kernels},
    {"input", "Input pipelines: distorted CIFAR-10 records, a folder of JPEG files", measure_input},
    {"executor", "The time per tiny op, of the accounting, and until a deep graph can train",
     measure_executor},
    {"step", "Any workload in any shape of cluster, compared with its bound", nullptr},
};

}  // namespace

std::span<const Case> all_cases() { return kCases; }

const Case& find_case(std::string_view name) {
  const auto known = std::ranges::find(kCases, name, &Case::name);
  if (known != std::end(kCases)) return *known;
  if (name == "reports" || name == "foresight" || name == "predictions") {
    throw Error(ErrorCode::kUsage,
                fmt::format("the case {} is measured by a command of its own: paceline-evidence {} "
                            "(cmake --preset evidence && cmake --build --preset evidence)",
                            name, name == "foresight" ? "predictions" : name));
  }
  std::vector<std::string_view> names;
  for (const Case& each : kCases) names.push_back(each.name);
  throw Error(ErrorCode::kUsage, fmt::format("unknown case '{}'{} ({})", name,
                                             did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace paceline::bench
