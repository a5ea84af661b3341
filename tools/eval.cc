#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/grouped_digits.h"
#include "base/print_text.h"
#include "checkpoint/checkpoint_reader.h"
#include "cli/evaluator_task.h"
#include "cli/flags/flags.h"
#include "cli/flags/settings_reader.h"
#include "cli/inference.h"
#include "models/model.h"
#include "paceline/error.h"
#include "run/program_run.h"
#include "tools/model_argument.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

using models::Model;

const ModelCommand kEval = {
    "paceline eval MODEL --out DIR …", [](const Model& model) { return model.can_evaluate(); },
    [](const Model& model) {
      return fmt::format("{} evaluates while it trains, and no checkpoint", model.name());
    }};

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
      {"--out", "DIR",
       "The folder that the run was given; DIR:best is the checkpoint that its --keep-best has "
       "kept",
       "Evaluation"},
      {"--once", "", "Evaluate the newest checkpoint, and end (so does DIR:best)", "Evaluation"},
  };
  return with_settings(std::move(line), model.settings().declared());
}

// Evaluates the best checkpoint of a run, which may still be training.
void evaluate_best(const EvaluateCheckpoint& evaluate_it, RunOptions run, const std::string& best) {
  run.resume = run.quiet = true;
  run.evaluates = best;
  const Evaluation found = evaluate_it(run);
  print_text(stdout, fmt::format("step {}: loss {:.4f}, precision {:.4f}\n",
                                 grouped_digits(found.global_step), found.loss, found.precision));
}

int evaluate(const Model& model, const Arguments& arguments) {
  const CommandLine line = eval_flags(model);
  const auto values = parse(line, {arguments.begin() + 1, arguments.end()});
  if (!values) return 0;
  const std::string given = values->text("--out");
  const std::optional<std::string> of_best = run_of_best(given);
  const std::string out = of_best.value_or(given);
  if (out.empty()) throw Error(ErrorCode::kUsage, "--out DIR is missing: the folder of the run");
  if (!std::filesystem::is_directory(out)) refuse_flag("--out", out, "there is no such folder");
  Settings settings = read_settings(model.settings().declared(), *values);
  // Only images for evaluation are needed, since nothing is trained.
  const std::map<std::string, std::string> set = settings.all_given();
  if (set.contains("eval_data") && !set.contains("data")) {
    settings.set("data", set.at("eval_data"), true);
  }
  model.check({}, {}, settings);
  RunOptions run;
  run.out = out;
  const Log log(log_options({}, run));
  own_program_run(run).log = &log;
  const EvaluateCheckpoint evaluate_it = [&](const RunOptions& of) {
    check_model(std::string(model.name()), saved_model(of.evaluates), given);
    return model.evaluate(of, settings);
  };
  CheckpointEvaluations evaluations(run, evaluate_it, log);
  for (const std::string& note : model.evaluation_notes(settings)) fmt::print("{}\n", note);
  if (of_best) {
    evaluate_best(evaluate_it, run, given);
    return 0;
  }
  const Interrupt interrupt;
  values->given("--once") ? void(evaluations.evaluate_newest())
                          : follow_run(evaluations, out, interrupt, {});
  evaluations.print_last_line();
  return 0;
}

}  // namespace

std::vector<CommandLine> eval_lines() {
  std::vector<CommandLine> lines;
  for (const Model* model : models_of(kEval)) lines.push_back(eval_flags(*model));
  return lines;
}

int eval_command(const Arguments& arguments) {
  const Model* const model = model_argument(kEval, arguments);
  return model == nullptr ? 0 : evaluate(*model, arguments);
}

}  // namespace paceline
