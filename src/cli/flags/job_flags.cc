#include "cli/flags/job_flags.h"

#include "cli/flags/config_file.h"
#include "cli/flags/flags.h"
#include "cli/flags/prediction_reader.h"
#include "paceline/error.h"
#include "params/strategy/strategy_fields.h"

namespace paceline {

namespace {

void add_below(FlagValues& values, const std::vector<GivenFlag>& source) {
  const FlagValues above = values;
  for (const GivenFlag& flag : source) {
    if (!displaced(above, flag.name)) values.add(flag);
  }
}

constexpr const char* kTaskVariable = "PACELINE_TASK";

/// Adds the flags that `paceline launch` gives in $PACELINE_TASK. Like the tasks of a launcher, the
/// command may also have the launcher's own flags.
void add_paceline_task(FlagValues& values, const Environment& environment,
                       const CommandLine& line) {
  const std::string_view text = text_in(environment, kTaskVariable);
  if (text.empty()) return;
  for (const GivenFlag& flag : flags_of(parse_json(text, kTaskVariable), line, kTaskVariable)) {
    if (!values.given(flag.name)) values.add(flag);
  }
  if (!values.given("--launched")) values.add({"--launched", {""}, kTaskVariable});
}

/// Reads the flags that `paceline predict` gives in $PACELINE_PREDICT. They replace the command's
/// own flags. The prediction looks for the fastest strategy, so the command's own strategy does not
/// restrict it.
void take_paceline_predict(FlagValues& values, const Environment& environment,
                           const CommandLine& line) {
  constexpr const char* kVariable = "PACELINE_PREDICT";
  const std::string_view text = text_in(environment, kVariable);
  if (text.empty()) return;
  if (!text_in(environment, kTaskVariable).empty()) {
    throw Error(ErrorCode::kUsage,
                "paceline predict -- COMMAND starts one process: its command is what paceline "
                "launch would start for each task, without paceline launch");
  }
  FlagValues told;
  for (const GivenFlag& flag : flags_of(parse_json(text, kVariable), line, kVariable)) {
    told.add(flag);
  }
  values.forget("--strategy");
  for (const StrategyField& field : strategy_fields()) values.forget(field.flag);
  for (const auto& [flag, value] : values.listed()) {
    if (displaced(told, flag)) values.forget(flag);
  }
  values.add_all(told);
}

}  // namespace

std::optional<FlagValues> parse_job(const CommandLine& line,
                                    const std::vector<std::string>& arguments,
                                    const Environment& environment) {
  std::optional<FlagValues> values = parse(line, arguments);
  if (!values) return values;
  if (values->given("--config"))
    add_below(*values, read_config_file(values->text("--config"), line));
  if (environment) take_paceline_predict(*values, environment, line);
  const bool alone = values->given("--alone") || values->text("--launcher") == "none";
  if (environment && !alone) add_paceline_task(*values, environment, line);
  if (environment) {
    const std::vector<GivenFlag> told = flags_of_environment(*values, environment);
    const bool overridden = values->given("--task") || displaced(*values, "--cluster");
    add_below(*values, told);
    check_sources_agree(*values, overridden ? std::vector<GivenFlag>() : told, environment);
    for (const GivenFlag& flag : flags_of_launcher(*values, environment)) {
      if (!values->given(flag.name)) values->add(flag);
    }
  }
  leave_counts_open(*values);
  return values;
}

}  // namespace paceline
