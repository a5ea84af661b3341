#include "tools/model_argument.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "paceline/error.h"
#include "tools/train_flags.h"

namespace paceline {

std::vector<const models::Model*> models_of(const ModelCommand& command) {
  std::vector<const models::Model*> found;
  for (const models::Model* model : models::all_models()) {
    if (command.can(*model)) found.push_back(model);
  }
  return found;
}

const models::Model* model_argument(const ModelCommand& command, const Arguments& arguments) {
  std::vector<std::string_view> names;
  for (const models::Model* model : models_of(command)) names.push_back(model->name());
  const std::string usage =
      fmt::format("{}, where MODEL is one of {}", command.usage, fmt::join(names, ", "));
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "the model is missing: " + usage);
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("Usage: {}\n", usage);
    return nullptr;
  }
  const models::Model& model = named_model(arguments.front());
  if (command.can(model)) return &model;
  throw Error(ErrorCode::kUsage, fmt::format("{}: {}", command.why_not(model), usage));
}

}  // namespace paceline
