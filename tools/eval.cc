#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/grouped_digits.h"
#include "checkpoint/checkpoints.h"
#include "cluster/flags/flags.h"
#include "cluster/flags/settings_reader.h"
#include "cluster/interrupt.h"
#include "cluster/report/run_folder.h"
#include "models/model.h"
#include "net/poll/poll_until.h"
#include "paceline/error.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

using models::Model;

// The folder may be on a disk that several hosts share, where nobody is told of new files.
constexpr Duration kLookEvery = std::chrono::seconds(2);

std::vector<const Model*> models_with_evaluation() {
  std::vector<const Model*> found;
  for (const Model* model : models::all_models()) {
    if (model->can_evaluate()) found.push_back(model);
  }
  return found;
}

CommandLine eval_flags(const Model& model) {
  CommandLine line;
  line.name = fmt::format("paceline eval {}", model.name());
  line.about =
      "Evaluates the checkpoints of a run while it trains: each new one, until the run has ended. "
      "The batch and the other settings of the model must be those of the run.";
  line.examples = fmt::format(R"(Example:
  paceline train {0} --data images --out run --save-every 60s
  paceline eval {0} --data images --out run --once)",
                              model.name());
  line.flags = {
      {"--out", "DIR", "The folder that the run was given", "Evaluation"},
      {"--once", "", "Evaluate the newest checkpoint, and end", "Evaluation"},
  };
  return with_settings(std::move(line), model.settings().declared());
}

/// The evaluations of one command.
class Evaluations {
 public:
  Evaluations(const Model& model, const std::string& out, const Settings& settings)
      : model_(model), settings_(settings), checkpoints_(out + "/checkpoints") {
    run_.out = out;
    run_.resume = run_.quiet = true;
  }

  /// Evaluates the newest checkpoint unless it was before. False: there is no other.
  bool evaluate_newest() {
    const auto newest = checkpoints_.newest_whole(WholeCheck::kSizes).whole;
    if (!newest || newest->step == last_step_) return false;
    last_step_ = newest->step;
    last_ = model_.evaluate(run_, settings_);
    if (last_.precision > best_) {
      best_ = last_.precision;
      best_step_ = last_step_;
    }
    fmt::print("step {}: loss {:.4f}, precision {:.4f}, best precision {:.4f}\n",
               grouped_digits(last_step_), last_.loss, last_.precision, best_);
    std::fflush(stdout);
    return true;
  }
  bool any() const { return last_step_ >= 0; }
  void print_last_line() const {
    fmt::print("precision {:.4f}, best {:.4f} at step {}\n", last_.precision, best_, best_step_);
  }

 private:
  const Model& model_;
  const Settings& settings_;
  const Checkpoints checkpoints_;
  RunOptions run_;
  models::Evaluation last_;
  double best_ = -1;
  std::int64_t last_step_ = -1, best_step_ = -1;
};

// A run has its lock there until it ends.
bool run_goes_on(const std::string& out) { return std::filesystem::exists(out + "/lock"); }

void follow(Evaluations& evaluations, const std::string& out, const Interrupt& interrupt) {
  while (true) {
    const bool goes_on = run_goes_on(out);
    if (evaluations.evaluate_newest()) continue;
    if (!goes_on) return;
    if (wait_to_read(interrupt.fd(), Deadline::after(kLookEvery))) {
      throw Error(ErrorCode::kCancelled, "the evaluation was interrupted");
    }
  }
}

int evaluate(const Model& model, const Arguments& arguments) {
  const CommandLine line = eval_flags(model);
  const auto values = parse(line, {arguments.begin() + 1, arguments.end()});
  if (!values) return 0;
  const std::string out = values->text("--out");
  if (out.empty()) throw Error(ErrorCode::kUsage, "--out DIR is missing: the folder of the run");
  if (!std::filesystem::is_directory(out)) refuse_flag("--out", out, "there is no such folder");
  const Settings settings = read_settings(model.settings().declared(), *values);
  model.check({}, {}, settings);
  Evaluations evaluations(model, out, settings);
  const Interrupt interrupt;
  values->given("--once") ? void(evaluations.evaluate_newest())
                          : follow(evaluations, out, interrupt);
  if (!evaluations.any()) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no whole checkpoint in {}", out));
  }
  evaluations.print_last_line();
  return 0;
}

}  // namespace

std::vector<CommandLine> eval_lines() {
  std::vector<CommandLine> lines;
  for (const Model* model : models_with_evaluation()) lines.push_back(eval_flags(*model));
  return lines;
}

int eval_command(const Arguments& arguments) {
  std::vector<std::string_view> names;
  for (const Model* model : models_with_evaluation()) names.push_back(model->name());
  const std::string usage = fmt::format("paceline eval MODEL --out DIR …, where MODEL is one of {}",
                                        fmt::join(names, ", "));
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "the model is missing: " + usage);
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    fmt::print("Usage: {}\n", usage);
    return 0;
  }
  const Model& model = named_model(arguments.front());
  if (!model.can_evaluate()) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{} evaluates while it trains, and no checkpoint: {}", model.name(), usage));
  }
  return evaluate(model, arguments);
}

}  // namespace paceline
