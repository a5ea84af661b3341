#include "models/model.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "models/fetch.h"
#include "models/mlp.h"
#include "models/ptb.h"
#include "models/settings.h"
#include "paceline/error.h"

namespace paceline::models {

std::span<const Model* const> all_models() {
  static const std::array<const Model*, 3> models = {&mlp_model(), &ptb_model(), &fetch_model()};
  return models;
}

const Model& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const Model* model : all_models()) {
    if (model->name() == name) return *model;
    names.emplace_back(model->name());
  }
  throw Error(ErrorCode::kUsage, fmt::format("unknown model '{}': {}", name, nearest(name, names)));
}

}  // namespace paceline::models
