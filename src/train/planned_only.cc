#include "train/planned_only.h"

#include <memory>
#include <mutex>
#include <utility>

namespace paceline {
namespace {

/// The state that the observers of all sessions of a run share.
struct Showing {
  explicit Showing(std::function<bool(const PlannedSession&)> to_show) : show(std::move(to_show)) {}
  const std::function<bool(const PlannedSession&)> show;
  std::mutex mutex;  // guards the next members: sessions may be made at once
  bool shown = false;
};

class PlannedOnly : public SessionObserver {
 public:
  explicit PlannedOnly(std::shared_ptr<Showing> showing) : showing_(std::move(showing)) {}

  bool planned(const PlannedSession& session) override {
    const std::lock_guard lock(showing_->mutex);
    showing_->shown = showing_->shown || showing_->show(session);
    return false;
  }

 private:
  const std::shared_ptr<Showing> showing_;
};

}  // namespace

MakeObserver planned_only(std::function<bool(const PlannedSession&)> show) {
  const auto showing = std::make_shared<Showing>(std::move(show));
  return [showing](const PlannedSession&) { return std::make_unique<PlannedOnly>(showing); };
}

}  // namespace paceline
