#include "models/ptb.h"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "models/ptb_graph.h"
#include "models/ptb_training.h"
#include "paceline/error.h"

namespace paceline::models {

namespace {

constexpr std::string_view kMakesOne = " (`paceline data corpus --out DIR --words N` makes one)";

}  // namespace

std::span<const std::string_view> PtbModel::flags() const {
  static constexpr std::array<std::string_view, 4> flags = {"batch", "epochs", "data", "size"};
  return flags;
}

std::span<const HyperParameter> PtbModel::hyper_parameters() const { return ptb_parameters(); }

void PtbModel::check(const Cluster& cluster, const RunOptions&, const ModelOptions& options) const {
  ptb_config(options);
  if (cluster.task.job == TaskId::Job::kPs) return;  // it reads no text
  if (options.data.empty()) {
    throw Error(ErrorCode::kUsage,
                "--data is missing: a folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt" +
                    std::string(kMakesOne));
  }
  if (!std::filesystem::is_directory(options.data)) {
    throw Error(ErrorCode::kUsage,
                "--data " + options.data + ": there is no such folder" + std::string(kMakesOne));
  }
  for (const char* file : {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"}) {
    if (std::filesystem::exists(std::filesystem::path(options.data) / file)) continue;
    throw Error(ErrorCode::kUsage,
                "--data " + options.data + ": it holds no " + file + std::string(kMakesOne));
  }
}

void PtbModel::run(const Cluster& cluster, const RunOptions& run,
                   const ModelOptions& options) const {
  check(cluster, run, options);
  PtbTraining(ptb_config(options), options.data, cluster, run).run();
}

std::vector<StepGraph> PtbModel::step_graphs(const ModelOptions& options) const {
  const PtbConfig config = ptb_config(options);
  auto graph = std::make_unique<Graph>();
  const PtbGraph ptb = build_ptb(*graph, config, config.batch, config.unroll, true);
  std::vector<StepGraph> steps;
  steps.push_back({"", std::move(graph), ptb_minimize(ptb, config)});
  return steps;
}

}  // namespace paceline::models
