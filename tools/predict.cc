#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "base/print_text.h"
#include "cli/flags/flags.h"
#include "paceline/error.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "predict/shape_predictor.h"
#include "tools/predict_learners.h"
#include "tools/predict_sizes.h"
#include "tools/predicted_command.h"
#include "tools/predicted_model.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

const double kTimeLimit = PredictionOptions().time_limit_s;

std::vector<Flag> flags_of_sizes() {
  std::vector<Flag> flags = sized_flags();
  for (const Flag& flag : learner_flags()) flags.push_back(flag);
  return flags;
}

CommandLine sizes_line() {
  return {
      "paceline predict",
      "Predicts how fast each way to distribute a training would be, and what limits it, before "
      "anything is started.\n\n"
      "paceline predict MODEL [flags of paceline train MODEL]\n"
      "paceline predict [the same flags] -- COMMAND, such as python train.py\n"
      "paceline predict --parameters N --step-ms MS [--workers N] [--gbps R] …\n"
      "paceline predict --parameters N --step-ms MS --learners N [--mtbf-hours H] …\n\n"
      "paceline predict MODEL --help lists the flags for a model, paceline predict --help -- "
      "COMMAND "
      "those for a command.",
      R"(Examples:
  paceline predict mlp
  paceline predict resnet --device sim --sim-step-ms 333 --hosts hosts.toml
  paceline predict --hosts hosts.toml -- python train.py
  paceline predict --parameters 18.9e6 --step-ms 5.6 --workers 4 --gbps 1
  paceline predict --parameters 18.9e6 --step-ms 5.6 --workers 4 --transport 332MB/s,350us
  paceline predict --parameters 1e9 --step-ms 2000 --gbps 1 --learners 100000 --mtbf-hours 1000)",
      flags_of_sizes()};
}

std::string learners_answer(const FlagValues& values, const SizedJob& job) {
  const LearnerStudy study = read_learner_study(values, job);
  return learners_text(study, study_learners(study, [](const std::string& strategy) {
                         print_text(stderr, "simulating " + strategy + " …\n");
                       }));
}

}  // namespace

std::vector<CommandLine> predict_lines() {
  std::vector<CommandLine> lines = {sizes_line()};
  for (const models::Model* model : models::all_models()) lines.push_back(predict_line(*model));
  return lines;
}

int predict_command(const Arguments& arguments) {
  if (!arguments.empty() && !arguments.front().starts_with('-')) {
    predict_model(named_model(arguments.front(), " --predict"),
                  {arguments.begin() + 1, arguments.end()});
    return 0;
  }
  if (std::ranges::find(arguments, "--") != arguments.end()) {
    predict_command_of(arguments);
    return 0;
  }
  const std::optional<FlagValues> values = parse(sizes_line(), arguments);
  if (!values) return 0;
  check_learner_flags(*values);
  if (!values->given("--parameters") && !values->given("--learners")) {
    throw Error(ErrorCode::kUsage,
                "the model is missing: paceline predict MODEL …, -- COMMAND, or --parameters N "
                "--step-ms MS");
  }
  const SizedJob job = read_sized_job(*values);
  if (values->given("--learners")) {
    say(learners_answer(*values, job));
  } else {
    const double limit_s = values->positive_number("--time-limit").value_or(kTimeLimit);
    print_sized(job, read_sized_shapes(*values, job), limit_s);
  }
  return 0;
}

}  // namespace paceline
