#include "paceline/program.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/automatic_way.h"
#include "cli/completion/shell_completion.h"
#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/run_options_reader.h"
#include "cli/flags/settings_reader.h"
#include "cli/joined_job.h"
#include "cli/task_program.h"
#include "kernels/device_kind.h"
#include "params/strategy/strategies.h"
#include "predict/prediction.h"
#include "run/standard_streams.h"

namespace paceline {

namespace {

CommandLine command_line(const std::string& name, const ProgramOptions& options) {
  CommandLine line{name, options.about, cluster_examples(name), run_flags()};
  const std::vector<Flag> cluster = cluster_flags();
  line.flags.insert(line.flags.end(), cluster.begin(), cluster.end());
  line = with_settings(std::move(line), options.settings);
  line.flags.push_back({"--completion", kShells,
                        "Print a script that makes this shell complete the program's flags",
                        "Shells"});
  return line;
}

using Work = std::function<void(const Cluster&, const RunOptions&, const Settings&)>;

// The program borrows the options and the work, which must outlive it.
Program program_of(const FlagValues& values, const std::vector<std::string>& arguments,
                   const ProgramOptions& options, const Work& work) {
  const Settings settings = read_settings(options.settings, values);
  Program program{read_cluster(values),
                  read_run_options(values),
                  read_observer_options(values),
                  "",
                  arguments,
                  [&work, settings](const Cluster& cluster, const RunOptions& run) {
                    work(cluster, run, settings);
                  }};
  program.lab = read_lab(values, program.cluster);
  program.placed = placed_in_words(values);
  program.key_hint = key_hint(values);
  set_places(program.lab, program.observers.prediction);
  if (options.evaluate) {
    program.evaluate = [&options, settings](const RunOptions& run) {
      return options.evaluate(run, settings);
    };
  }
  program.run.flags = flags_and_settings(values, settings);
  return program;
}

// The ways that the program's first session compares.
std::vector<ComparedWay> compared_by(const Program& program) {
  std::vector<ComparedWay> ways;
  const auto list = [&](std::vector<ComparedWay> compared) { ways = std::move(compared); };
  run_dry(program, list_ways(program.observers.prediction, list));
  return ways;
}

}  // namespace

std::int64_t batches_of_step(const Cluster& cluster) {
  const StrategyKind& kind = strategy_kind(cluster);
  const int needed = cluster.strategy.replicas > 0 ? cluster.strategy.replicas : cluster.workers();
  const bool rounds = kind.exact() && kind.in_rounds(cluster.strategy);
  return std::int64_t{cluster.towers} * cluster.accumulate * (rounds ? needed : 1);
}

bool computes(const DeviceChoice& device) {
  return !device_kind(device.kind).is_simulated || device.sim_compute;
}

int run_program(
    int argc, char** argv, const ProgramOptions& options,
    const std::function<void(const Cluster&, const RunOptions&, const Settings&)>& work) {
  prepare_standard_streams();
  return report_errors([&] {
    const CommandLine line = command_line(std::filesystem::path(argv[0]).filename(), options);
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    std::optional<FlagValues> values = parse_job(line, arguments, own_environment);
    if (!values) return 0;
    if (const auto shell = values->choice("--completion", choices_of(kShells))) {
      fmt::print("{}", shell_completion(*shell, command_nodes({&line, 1})));
      return 0;
    }
    const std::unique_ptr<JoinedJob> joined = join_job(*values);
    check_one_of_several(*values, own_environment);
    return values->with_places([&] {
      const Program asked = program_of(*values, arguments, options, work);
      if (!leaves_way_open(*values, asked.cluster)) return run_role(asked);
      const auto with = [&](const std::vector<std::string>& words) {
        return program_of(*parse_job(line, words, nullptr), words, options, work);
      };
      return run_role(with(with_fastest_way(arguments, *values, compared_by(asked),
                                            [&](const auto& words) { with(words); })));
    });
  });
}

int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work) {
  return run_program(
      argc, argv, {},
      [&](const Cluster& cluster, const RunOptions& run, const Settings&) { work(cluster, run); });
}

}  // namespace paceline
