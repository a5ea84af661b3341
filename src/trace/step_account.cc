#include "trace/step_account.h"

#include <numeric>

namespace paceline {

std::string_view name_of(Activity activity) {
  constexpr std::array<std::string_view, kActivityCount> names = {
      "input", "compute", "pull", "push", "apply", "wait", "other"};
  return names[std::size_t(activity)];
}

void StepAccount::show_device_waits(Timeline& timeline) {
  timeline_ = &timeline;
  device_wait_ = timeline.label({"wait for the device", "device", {}});
}

void StepAccount::reset() {
  spent_ = {};
  since_ = clock_.now();
  current_ = Activity::kOther;
}

Duration StepAccount::total() const {
  return std::accumulate(spent_.begin(), spent_.end(), Duration(0));
}

}  // namespace paceline
