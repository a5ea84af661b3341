#include "models/ptb.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "models/ptb_graph.h"
#include "models/ptb_inference.h"
#include "models/ptb_training.h"
#include "paceline/error.h"

namespace paceline::models {

namespace {

constexpr std::string_view kMakesOne = " (`paceline data corpus --out DIR --words N` makes one)";

void check_text(const std::string& folder) {
  if (folder.empty()) {
    throw Error(ErrorCode::kUsage,
                "--data is missing: a folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt" +
                    std::string(kMakesOne));
  }
  std::error_code unseen;  // a folder that may not be looked at counts as none
  if (!std::filesystem::is_directory(folder, unseen)) {
    throw Error(ErrorCode::kUsage,
                "--data " + folder + ": there is no such folder" + std::string(kMakesOne));
  }
  for (const char* file : {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"}) {
    if (std::filesystem::exists(std::filesystem::path(folder) / file, unseen)) continue;
    throw Error(ErrorCode::kUsage,
                "--data " + folder + ": it holds no " + file + std::string(kMakesOne));
  }
}

class PtbModel : public Model {
 public:
  PtbModel()
      : Model({.name = "ptb",
               .summary = "LSTM word language model on Penn Treebank's or generated text, SGD",
               .settings = ptb_settings()}) {}

  void check(const Cluster& cluster, const RunOptions& run,
             const Settings& settings) const override {
    const bool reads_text = cluster.task.role != TaskId::Role::kPs && !run.predicts;
    if (reads_text) check_text(settings[ptb_data_setting()]);
  }

  void run(const Cluster& cluster, const RunOptions& run, const Settings& settings) const override {
    check(cluster, run, settings);
    PtbTraining(ptb_config(settings), settings[ptb_data_setting()], cluster, run).run();
  }

  std::vector<std::string> numbers() const override {
    return {"perplexity/train", "perplexity/valid", "perplexity/test"};
  }

  std::optional<OnnxModel> onnx_model(const SavedShapes& saved) const override {
    const Shape& words = saved_shape(saved, "embedding");
    PtbConfig config;
    config.vocabulary = words[0];
    config.hidden = words[1];
    config.layers = 1;
    while (saved.contains(fmt::format("lstm{}/w", config.layers + 1))) ++config.layers;
    return OnnxModel{.open = {"time", "batch"}, .build = [config](auto sizes) {
                       return ptb_inference(config, sizes[0], sizes[1]);
                     }};
  }

  std::optional<Inference> inference() const override {
    return Inference{.about =
                         "Computes the perplexity of each line of a text, which begins and ends "
                         "with <eos>. Words that the run's text did not have are read as <unk>.",
                     .data = "The text: a file, a sentence on each line"};
  }

  void infer(const InferenceRequest& request, const Settings& settings) const override {
    infer_lines(request, ptb_config(settings));
  }

  std::vector<StepGraph> step_graphs(const Settings& settings) const override {
    const PtbConfig config = ptb_config(settings);
    auto graph = std::make_unique<Graph>();
    const PtbGraph ptb = build_ptb(*graph, config, config.batch, config.unroll, true);
    std::vector<StepGraph> steps;
    steps.push_back({"", std::move(graph), ptb_minimize(ptb, config)});
    return steps;
  }
};

}  // namespace

const Model& ptb_model() {
  static const PtbModel model;
  return model;
}

}  // namespace paceline::models
