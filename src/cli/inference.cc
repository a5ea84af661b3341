#include "cli/inference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "base/print_text.h"
#include "base/text_file.h"
#include "cli/flags/settings_reader.h"
#include "paceline/error.h"
#include "run/usage_errors.h"

namespace paceline {
namespace {

constexpr const char* kResults = "Results";

std::string cell_text(const ResultValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return fmt::format("{:.6g}", std::get<double>(value));
}

// Quotes a cell as RFC 4180 says.
std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::vector<std::string> texts;
  std::ranges::transform(cells, std::back_inserter(texts), quoted);
  return fmt::format("{}\n", fmt::join(texts, ","));
}

// Bytes that are no UTF-8, as in a file's name, are replaced. A number that is not finite becomes
// null.
std::string json_line(const InferenceRow& row) {
  nlohmann::ordered_json object;
  for (const auto& [column, value] : row) {
    std::visit([&, &name = column](const auto& held) { object[name] = held; }, value);
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Prints each result at once; with --to, collects all results and writes the file at the end.
class Results {
 public:
  Results(const std::string& file, bool json) : file_(file), json_(json) {}
  void add(const InferenceRow& row) {
    std::vector<std::string> columns, cells;
    for (const auto& [column, value] : row) {
      columns.push_back(column);
      cells.push_back(cell_text(value));
    }
    if (!json_ && rows_ == 0) put(csv_line(columns));
    put(json_ ? json_line(row) : csv_line(cells));
    ++rows_;
  }
  void end() const {
    if (!file_.empty()) write_text_file("--to", file_, text_);
  }

 private:
  void put(const std::string& line) {
    file_.empty() ? print_text(stdout, line) : void(text_ += line);
  }

  const std::string file_;
  const bool json_;
  std::int64_t rows_ = 0;
  std::string text_;
};

// Most settings concern training, so here they have no flags of their own: only --set changes them.
std::vector<AnySetting> without_flags(std::vector<AnySetting> settings) {
  for (AnySetting& setting : settings) setting.flag = false;
  return settings;
}

// A setting that the user gives now overrides the run's.
Settings settings_of(const InferenceCommand& command, const SavedModel& saved,
                     const FlagValues& values) {
  Settings settings = read_settings(without_flags(command.settings), values);
  const std::map<std::string, std::string> given = settings.all_given();
  for (const auto& [name, value] : saved.settings) {
    const auto known = std::ranges::find(command.settings, name, &AnySetting::name);
    if (known != command.settings.end() && !given.contains(name)) settings.set(name, value);
  }
  return settings;
}

std::string needed(const FlagValues& values, const std::string& flag, const std::string& what) {
  std::string text = values.text(flag);
  if (!text.empty()) return text;
  throw Error(ErrorCode::kUsage, fmt::format("{} is missing: {}", flag, what));
}

SavedModel read_out(const std::string& run) {
  try {
    return saved_model(run);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    refuse_flag("--out", run, error.what());
  }
}

SavedModel saved_by(const InferenceCommand& command, const std::string& run) {
  const SavedModel saved = read_out(run);
  for (const std::string& line : saved.passed_over) print_text(stderr, line + "\n");
  check_model(command.model, saved, run);
  return saved;
}

}  // namespace

void check_model(const std::string& model, const SavedModel& saved, const std::string& out) {
  if (model.empty() || saved.model.empty() || saved.model == model) return;
  refuse_flag("--out", out,
              fmt::format("{} is a checkpoint of {}, not of {}", saved.path, saved.model, model));
}

CommandLine inference_line(const InferenceCommand& command) {
  CommandLine line{command.name, command.about, command.examples, {}};
  line.flags = {{"--out", "PATH",
                 "The run whose newest whole checkpoint is taken; RUN:best is the one that its "
                 "--keep-best has kept, and one checkpoint's folder or a safetensors file will do, "
                 "too",
                 kResults},
                {"--data", "PATH", command.data, kResults}};
  if (command.top) {
    line.flags.push_back(
        {"--top", "K", "Name the K most probable classes of each (default 1)", kResults});
  }
  line.flags.push_back({"--format", "csv|jsonl",
                        "csv: a line of names, then a line for each result (default); jsonl: a "
                        "JSON object on each line",
                        kResults});
  line.flags.push_back(
      {"--to", "FILE", "Write the results to this file, not to standard output", kResults});
  if (command.settings.empty()) return line;
  line.flags.push_back({"--set", "NAME=VALUE",
                        fmt::format("Change a setting of the run, or give one that the checkpoint "
                                    "does not tell, such as those of a safetensors file ({} --help "
                                    "lists them)",
                                    command.trained_by),
                        kResults, true});
  return line;
}

int run_inference(const InferenceCommand& command, const std::vector<std::string>& words) {
  const std::optional<FlagValues> values = parse(inference_line(command), words);
  if (!values) return 0;
  const std::string run = needed(*values, "--out", "the folder of the run, or RUN:best");
  InferenceRequest request;
  request.data = needed(*values, "--data", "the new data");
  const std::string to = values->text("--to");
  if (!to.empty()) check_new_file("--to", to);
  Results results(to, values->choice("--format", {"csv", "jsonl"}) == "jsonl");
  if (command.top) request.top = values->whole_number("--top", 1, 1'000'000).value_or(1);
  request.give = [&](const InferenceRow& row) { results.add(row); };
  request.saved = saved_by(command, run);
  command.infer(request, settings_of(command, request.saved, *values));
  results.end();
  return 0;
}

}  // namespace paceline
