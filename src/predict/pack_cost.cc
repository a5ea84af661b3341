#include "predict/pack_cost.h"

namespace paceline {

double pack_s_per_byte(const ContributionForm& form, bool error_feedback) {
  if (form.exact()) return 0;
  const double feedback = error_feedback ? 0.2e-9 : 0;
  if (form.kept > 0) return 0.083e-9 * form.kept + feedback;
  switch (form.type) {
    case DType::kBFloat16:
      return 0.015e-9 + feedback / 20;
    case DType::kFloat16:
      return 0.2e-9 + feedback;
    default:
      return 0.67e-9 + feedback;
  }
}

double unpack_s_per_byte(const ContributionForm& form) {
  if (form.exact()) return 0;
  if (form.kept > 0) return 0.035e-9;
  switch (form.type) {
    case DType::kBFloat16:
      return 0.007e-9;
    case DType::kFloat16:
      return 0.022e-9;
    default:
      return 0.085e-9;
  }
}

}  // namespace paceline
