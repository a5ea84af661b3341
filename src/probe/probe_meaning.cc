#include "probe/probe_meaning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printed.h"
#include "predict/prediction_text.h"
#include "predict/roof.h"

namespace paceline {
namespace {

std::string megabytes(double bytes) { return rounded(bytes * 1e-6, 3) + " MB"; }

std::string time_text(double seconds) {
  return seconds < 1 ? rounded(1e3 * seconds, 3) + " ms" : rounded(seconds, 3) + " s";
}

std::string slowest_way(double value_bytes, const DescribedHosts& hosts) {
  const HostPair* slowest = nullptr;
  for (const HostPair& pair : hosts.pairs) {
    const double rate = pair.link.bytes_per_s;
    if (rate > 0 && (slowest == nullptr || rate < slowest->link.bytes_per_s)) slowest = &pair;
  }
  if (slowest == nullptr) return "";
  const auto name = [&](int host) { return hosts.hosts[std::size_t(host)].name; };
  const double rate = slowest->link.bytes_per_s;
  return fmt::format("The slowest way, from {} to {}, carries {} a second: {} take {} there.\n",
                     name(slowest->link.from), name(slowest->link.to), megabytes(rate),
                     megabytes(value_bytes), time_text(value_bytes / rate));
}

std::string shape_in_words(const Prediction& it) {
  return fmt::format("{}: {} steps/s, {} × one process. The limit: {}", it.shape.text(),
                     rounded(it.steps_per_s, 3), times_of(it.times_alone), it.limit);
}

}  // namespace

std::string meaning_text(const std::string& model, double value_bytes, const DescribedHosts& hosts,
                         std::span<const Prediction> predictions) {
  std::string text = fmt::format(
      "What this network means for {}:\n"
      "Its values are {}; in each step a worker that trains with others sends and receives about "
      "as "
      "much, unless few rows of a variable change.\n",
      model, megabytes(value_bytes));
  text += slowest_way(value_bytes, hosts);
  const Prediction& best = predictions.front();
  const auto several = std::ranges::find_if(
      predictions, [](const Prediction& each) { return !each.shape.is_one_process(); });
  if (!best.shape.is_one_process()) {
    text += fmt::format("The fastest way is {}.\nIts flags: {}\n", shape_in_words(best),
                        flags_of(best.shape));
  } else if (several == predictions.end()) {
    text +=
        "Only one process was predicted: name more hosts, or give it more time (--time-limit).\n";
  } else {
    text += fmt::format(
        "One process is the fastest, with {} steps/s: more hosts do not help. Of "
        "several hosts the fastest is {}.\n",
        rounded(best.steps_per_s, 3), shape_in_words(*several));
  }
  if (const std::string note = convergence_note(predictions.first(1)); !note.empty())
    text += note + "\n";
  const bool beside_others = std::ranges::any_of(
      hosts.hosts, [](const PredictedHost& host) { return is_beside_others(host.others_share); });
  return beside_others ? text +
                             "Other programs had the cores of some hosts: measure again when they "
                             "have ended.\n"
                       : text;
}

}  // namespace paceline
