#include "params/wire/wire_form.h"

#include <fmt/format.h>

namespace paceline {

std::string WireForm::text() const {
  if (exact()) return {};
  std::string text{travelling_name(numbers.type)};
  if (numbers.kept > 0) text += fmt::format(", {} of {}", numbers.kept, kScaledBlock);
  return text;
}

std::string WireForm::flags() const {
  std::string flags;
  if (numbers.type != DType::kFloat32) {
    flags += fmt::format(" --wire {}", travelling_name(numbers.type));
  }
  if (numbers.kept > 0) flags += fmt::format(" --top-k {}", numbers.kept);
  return flags;
}

}  // namespace paceline
