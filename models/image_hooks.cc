#include "models/image_hooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline::models {
namespace {

constexpr std::int64_t kRateEvery = 10, kTermsEvery = 100;  // own steps

// Returns the value below which about the share `part` of the values lies.
double percentile(std::vector<float>& values, double part) {
  const auto at = values.begin() + std::lround(part * double(values.size() - 1));
  std::ranges::nth_element(values, at);
  return double(*at);
}

}  // namespace

std::vector<Value> values_of(const std::vector<LossTerm>& terms) {
  std::vector<Value> values;
  values.reserve(terms.size());
  for (const LossTerm& term : terms) values.push_back(term.value);
  return values;
}

void ImagesPerSecond::begin(Session& session) {
  if (since_step_ < 0) printed(session.last_step().step);
}

bool ImagesPerSecond::after_step(Session& session, const StepResult& result) {
  if (result.step % kRateEvery == 0) print_rate(session, result);
  if (result.step % kTermsEvery == 0) print_terms(session, result);
  return true;
}

void ImagesPerSecond::print_rate(Session& session, const StepResult& result) {
  const double steps = double(result.step - since_step_);
  const double seconds = std::chrono::duration<double>(Clock::now() - since_).count() / steps;
  const double images = double(batch_ * session.cluster().towers);
  session.print(fmt::format("step {}, loss = {:.2f} ({:.1f} images/s; {:.3f} s/step)", result.step,
                            result.loss, images / seconds, seconds));
  printed(result.step);
}

void ImagesPerSecond::print_terms(Session& session, const StepResult& result) const {
  std::string text = fmt::format("step {}, ", result.step);
  for (const LossTerm& term : terms_) {
    text += fmt::format("{} = {:.4f}, ", term.name, session.value(term.value).item<float>());
  }
  session.print(text + fmt::format("total = {:.4f}", result.loss));
}

void ImagesPerSecond::printed(std::int64_t step) {
  since_ = Clock::now();
  since_step_ = step;
}

void ElapsedTime::begin(Session&) {
  if (seconds_.empty()) begun_ = std::chrono::steady_clock::now();
}

bool ElapsedTime::after_step(Session&, const StepResult& result) {
  seconds_.push_back(float(result.seconds));
  return true;
}

void ElapsedTime::end(Session& session) {
  if (!session.ended() || seconds_.empty()) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun_;
  const double low = percentile(seconds_, 0.05), high = percentile(seconds_, 0.95);
  session.print(fmt::format("elapsed {:.1f} s, {:.3f} to {:.3f} s/step (5% to 95% of the steps)",
                            elapsed.count(), low, high));
}

}  // namespace paceline::models
