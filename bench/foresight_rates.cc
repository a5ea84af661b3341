#include "bench/foresight_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <vector>

#include "base/memory_file.h"
#include "base/real_clock.h"
#include "base/text_file.h"
#include "bench/foresight_rows.h"
#include "bench/generated_text.h"
#include "bench/train_run.h"
#include "cluster/lab/lab.h"
#include "paceline/version.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"

namespace paceline::bench {
namespace {

constexpr const char* kHeader =
    "machine,cores,date,commit,gbytes_per_s,row,model,strategy,ps,workers,link,wire,predicted,low,"
    "high,measured,ratio,limit\n";
constexpr std::int64_t kForesightWords = 300'000;

// A field of CSV, in quotes.
std::string quoted_field(const std::string& text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

class ForesightRuns {
 public:
  explicit ForesightRuns(const std::string& csv) : csv_(csv), commit_(version_and_commit()) {
    std::ifstream file(csv);
    for (std::string line; std::getline(file, line);) {
      if (line.find(commit_) != line.npos) known_.insert(line);
    }
    if (!std::ifstream(csv)) std::ofstream(csv) << kHeader;
  }

  bool knows(const ForesightRow& row) const {
    return std::ranges::any_of(known_, [&](const std::string& line) {
      return line.find(quoted_field(row.name())) != line.npos;
    });
  }

  /// Returns measured ÷ predicted; nothing when nothing was expected.
  std::optional<double> run(const ForesightRow& row) {
    const ForecastHost host = measured_host();
    const MemoryFile
        roof;  // a new one, since what is written to a descriptor follows what is there
    write_text_file("the roof", roof.path(), roof_file_text(host));
    std::vector<std::string> arguments = {"train", row.model};
    const std::vector<std::string> flags = row.flags();
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.end(), {"--roof", roof.path()});
    if (row.model == "ptb") arguments.insert(arguments.end(), {"--data", text_.folder()});
    const Report report = run_train(arguments);
    const double made = total_steps_per_s(report);
    if (!report.expected) return {};
    const ExpectedSpeed& expected = *report.expected;
    std::ofstream(csv_, std::ios::app) << fmt::format(
        "{},{},{},{},{:.1f},{},{},{},{},{},{},{},{:.4g},{:.4g},{:.4g},{:.4g},{:.4f},{}\n",
        quoted_field(processor_name()), host.cores, today(), commit_, host.bytes_per_s * 1e-9,
        quoted_field(row.name()), row.model, row.strategy, row.ps, row.workers, row.link,
        row.bfloat16 ? "bfloat16" : "float32", expected.steps_per_s, expected.low, expected.high,
        made, made / expected.steps_per_s, quoted_field(expected.limit));
    return made / expected.steps_per_s;
  }

 private:
  const std::string csv_, commit_;
  std::set<std::string> known_;
  GeneratedText text_{kForesightWords};
};

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[std::size_t(std::llround(part * double(values.size() - 1)))];
}

}  // namespace

void measure_foresight(Recorder& recorder, const ForesightSelection& selection) {
  const RealClock clock;
  const TimePoint begun = clock.now();
  const std::string no_lab = why_no_lab();
  if (!no_lab.empty()) recorder.note("Rows with links of a limited rate are left out: " + no_lab);
  ForesightRuns runs(selection.csv);
  std::vector<double> errors;
  for (const ForesightRow& row : foresight_rows()) {
    if (!selection.only.empty() && row.model != selection.only) continue;
    if ((row.link == "1 Gbit/s" && !no_lab.empty()) || row.strategy == "local" || runs.knows(row))
      continue;
    if (double((clock.now() - begun).count()) * 1e-9 > 60 * selection.minutes) break;
    recorder.progress(row.name());
    if (const auto ratio = runs.run(row)) errors.push_back(100 * std::abs(*ratio - 1));
  }
  if (errors.empty()) return recorder.note("There was no row to measure: the file has them all");
  recorder.add(figure_of(fmt::format("error of {} predictions, median", errors.size()), "%",
                         {percentile(errors, 0.5)}));
  recorder.add(figure_of("the same, 95th percentile", "%", {percentile(errors, 0.95)}));
}

}  // namespace paceline::bench
