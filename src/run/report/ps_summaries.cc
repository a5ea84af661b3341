#include "run/report/ps_summaries.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "paceline/error.h"

namespace paceline {
namespace {

using Shares = std::vector<std::pair<const char*, double PsSummary::*>>;

const Shares kShares = {{"share/apply", &PsSummary::apply_share},
                        {"share/queue", &PsSummary::queue_share},
                        {"share/idle", &PsSummary::idle_share}};

// Shares are of all the time until then.
std::vector<SummaryValue> values_between(const PsSummary& last, const PsSummary& now) {
  std::vector<SummaryValue> values;
  const double seconds = now.seconds - last.seconds;
  if (seconds > 0) {
    values.push_back({"speed/steps_per_s", float(double(now.applied - last.applied) / seconds)});
    for (const auto& [tag, share] : kShares) {
      const double spent = now.*share * now.seconds - last.*share * last.seconds;
      values.push_back({tag, float(spent / seconds)});
    }
  }
  const double cores = last.use ? last.use->core_seconds : 0,
               used = last.use ? last.use->seconds : 0;
  if (now.use && now.use->seconds > used) {
    const double passed = now.use->seconds - used;
    values.push_back({"use/cores", float((now.use->core_seconds - cores) / passed)});
    values.push_back(
        {"use/sent_bytes_per_s", float(double(now.bytes_sent - last.bytes_sent) / passed)});
    values.push_back({"use/received_bytes_per_s",
                      float(double(now.bytes_received - last.bytes_received) / passed)});
  }
  return values;
}

}  // namespace

void PsSummaries::add(const PsSummary& now) {
  if (failed_ || now.applied == last_.applied) return;
  try {
    write(now);
  } catch (const Error& error) {
    failed_ = true;
    if (log_ != nullptr) {
      log_->warning(fmt::format("{}; the job goes on without these summaries", error.what()));
    }
  }
}

void PsSummaries::write(const PsSummary& now) {
  // A job that is resumed has made the steps before.
  if (!writer_) writer_.emplace(folder_, now.global_step - now.applied);
  std::vector<SummaryValue> values = values_between(last_, now);
  if (!values.empty()) writer_->add({.step = now.global_step, .values = std::move(values)});
  last_ = now;
}

}  // namespace paceline
