// The model that the first argument of a subcommand names.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"
#include "tools/subcommand.h"

namespace paceline {

/// A subcommand for some of the models.
struct ModelCommand {
  std::string usage;  // "paceline eval MODEL --out DIR …"
  bool (*can)(const models::Model&);
  std::string (*why_not)(const models::Model&);  // the beginning of an error
};
/// Returns the models that the command supports.
std::vector<const models::Model*> models_of(const ModelCommand& command);
/// Returns the model that the first argument names; null if the argument was --help, after printing
/// the help. Throws kUsage, with the usage, if there is no argument, or if the command does not
/// support the model.
const models::Model* model_argument(const ModelCommand& command, const Arguments& arguments);

}  // namespace paceline
