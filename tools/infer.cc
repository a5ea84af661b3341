#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/inference.h"
#include "models/model.h"
#include "tools/model_argument.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

using models::Model;

const ModelCommand kInfer = {"paceline infer MODEL --out RUN --data NEW …",
                             [](const Model& model) { return model.inference().has_value(); },
                             [](const Model& model) {
                               return fmt::format("{} computes on noise, and has nothing to infer",
                                                  model.name());
                             }};

InferenceCommand inference_of(const Model& model) {
  const models::Inference inference = *model.inference();
  const std::string name = fmt::format("paceline infer {}", model.name());
  const char* const data = inference.top ? "new" : "new.txt";
  return {
      .name = name,
      .trained_by = fmt::format("paceline train {}", model.name()),
      .about = inference.about + " The settings are those of the run, whose data is not needed.",
      .data = inference.data,
      .examples =
          fmt::format(R"(Examples:
  paceline train {0} --data {5} --out run --keep-best {1}
  {2} --out run --data {3}
  {2} --out run:best --data {3}{4} --format jsonl --to results.jsonl)",
                      model.name(), inference.top ? "loss/valid" : "perplexity/valid", name, data,
                      inference.top ? " --top 3" : "", inference.top ? "photos" : "texts"),
      .top = inference.top,
      .model = std::string(model.name()),
      .settings = model.settings().declared(),
      .infer = [&model](const InferenceRequest& request, const Settings& settings) {
        model.infer(request, settings);
      }};
}

}  // namespace

std::vector<CommandLine> infer_lines() {
  std::vector<CommandLine> lines;
  for (const Model* model : models_of(kInfer))
    lines.push_back(inference_line(inference_of(*model)));
  return lines;
}

int infer_command(const Arguments& arguments) {
  const Model* const model = model_argument(kInfer, arguments);
  if (model == nullptr) return 0;
  return run_inference(inference_of(*model), {arguments.begin() + 1, arguments.end()});
}

}  // namespace paceline
