#include "models/model.h"

#include <algorithm>
#include <array>

#include "models/cifar10.h"
#include "models/fetch.h"
#include "models/mlp.h"
#include "models/ptb.h"
#include "models/resnet.h"
#include "paceline/error.h"

namespace paceline::models {

Settings Model::settings(const std::map<std::string, std::string>& set) const {
  Settings settings(facts_.settings);
  for (const auto& [name, value] : set) settings.set(name, value);
  return settings;
}

const Shape& saved_shape(const SavedShapes& saved, const std::string& variable) {
  const auto found = saved.find(variable);
  if (found != saved.end()) return found->second;
  throw Error(ErrorCode::kFailedPrecondition,
              "the checkpoint has no variable " + variable + ": it is of another model");
}

std::span<const Model* const> all_models() {
  static const std::array<const Model*, 5> models = {&mlp_model(), &ptb_model(), &fetch_model(),
                                                     &cifar10_model(), &resnet_model()};
  return models;
}

const Model* find_model(std::string_view name) {
  const std::span<const Model* const> all = all_models();
  const auto found = std::ranges::find(all, name, &Model::name);
  return found != all.end() ? *found : nullptr;
}

}  // namespace paceline::models
