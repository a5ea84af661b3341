#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printed.h"
#include "paceline/error.h"
#include "paceline/hooks.h"

namespace paceline {
namespace {

// Returns text such as "layer1/weights[17] is nan"; empty: all values are finite.
std::string first_not_finite(Session& session) {
  for (const std::string& name : session.variables().names()) {
    const Tensor value = session.variables().get(name);
    if (value.dtype() != DType::kFloat32) continue;
    const auto values = value.data<float>();
    const auto bad = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
    if (bad != values.end())
      return fmt::format("{}[{}] is {}", name, bad - values.begin(), printed(*bad));
  }
  return "";
}

}  // namespace

bool NanGuard::after_step(Session& session, const StepResult& result) {
  if (std::isfinite(result.loss)) return true;
  const std::string variable = first_not_finite(session);
  throw Error(
      ErrorCode::kFailedPrecondition,
      fmt::format("the loss of step {} is {}: {}", result.global_step, printed(result.loss),
                  variable.empty() ? "all variables are finite, so the inputs are not, or the "
                                     "learning rate is too high"
                                   : variable));
}

}  // namespace paceline
