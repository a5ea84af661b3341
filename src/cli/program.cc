#include "paceline/program.h"

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/automatic_shape.h"
#include "cli/completion/shell_completion.h"
#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/run_options_reader.h"
#include "cli/flags/settings_reader.h"
#include "cli/inference.h"
#include "cli/joined_job.h"
#include "cli/task_program.h"
#include "kernels/device_kind.h"
#include "paceline/error.h"
#include "params/strategy/strategies.h"
#include "predict/shape_predictor.h"
#include "run/program_run.h"
#include "run/standard_streams.h"

namespace paceline {

namespace {

CommandLine command_line(const std::string& name, const ProgramOptions& options) {
  CommandLine line{name, options.about, cluster_examples(name), run_flags()};
  const std::vector<Flag> cluster = cluster_flags();
  line.flags.insert(line.flags.end(), cluster.begin(), cluster.end());
  line = with_settings(std::move(line), options.settings);
  if (options.infer) {
    line.examples += fmt::format(
        "\n\n{} infer --out RUN --data NEW computes results of new data with a checkpoint of a "
        "run; "
        "--help after it lists its flags.",
        name);
  }
  line.flags.push_back({"--completion", kShells,
                        "Print a script that makes this shell complete the program's flags",
                        "Shells"});
  return line;
}

using Work = std::function<void(const Cluster&, const RunOptions&, const Settings&)>;

InferenceCommand inference_of(const std::string& name, const ProgramOptions& options) {
  const std::string command = name + " infer";
  return {
      .name = command,
      .trained_by = name,
      .about =
          "Computes results of new data with a checkpoint of a run of this program. The settings "
          "are those of the run.",
      .data = "The new data",
      .examples = fmt::format("Examples:\n  {0} --out run --data NEW\n"
                              "  {0} --out run:best --data NEW --format jsonl --to results.jsonl",
                              command),
      .model = "",
      .settings = options.settings,
      .infer = options.infer};
}

// The returned program refers to the options and the work, which must outlive it.
Program program_run_of(const FlagValues& values, const std::vector<std::string>& arguments,
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
  program.old_name_hint = old_name_hint(values, program.cluster);
  program.key_hint = key_hint(values);
  set_places(program.lab, program.observers.prediction);
  if (options.evaluate) {
    program.evaluate = [&options, settings](const RunOptions& run) {
      return options.evaluate(run, settings);
    };
  }
  own_program_run(program.run).flags = flags_and_settings(values, settings);
  program.run.settings = settings.all_given();
  return program;
}

// Returns the predictions of the ways that the program's first session compares.
std::vector<Prediction> compared_by(const Program& program) {
  std::vector<Prediction> predictions;
  const auto list = [&](std::vector<Prediction> compared) { predictions = std::move(compared); };
  run_dry(program, list_shapes(program.observers.prediction, list));
  return predictions;
}

// Refuses to start tasks in a program whose main function is not run_program's, since it cannot be
// started again as a task.
void check_starts_no_tasks(const Cluster& cluster) {
  if (cluster.process != Cluster::Process::kLauncher) return;
  throw Error(ErrorCode::kUsage,
              "--ps and --workers: this program starts no tasks of its job; paceline launch --ps M "
              "--workers N -- COMMAND does");
}

// Returns the exit status, or throws the exception that ends the process.
int run_with_flags(const std::vector<std::string>& words, const ProgramOptions& options,
                   const Work& work, bool starts_tasks) {
  const std::string name = std::filesystem::path(words.at(0)).filename();
  const std::vector<std::string> arguments(words.begin() + 1, words.end());
  if (options.infer && !arguments.empty() && arguments.front() == "infer") {
    return run_inference(inference_of(name, options), {arguments.begin() + 1, arguments.end()});
  }
  const CommandLine line = command_line(name, options);
  std::optional<FlagValues> values = parse_job(line, arguments, own_environment);
  if (!values) return 0;
  if (const auto shell = values->choice("--completion", choices_of(kShells))) {
    std::vector<CommandLine> lines = {line};
    if (options.infer) lines.push_back(inference_line(inference_of(name, options)));
    fmt::print("{}", shell_completion(*shell, command_nodes(lines)));
    return 0;
  }
  const std::unique_ptr<JoinedJob> joined = join_job(*values);
  check_one_of_several(*values, own_environment);
  return values->with_places([&] {
    const Program asked = program_run_of(*values, arguments, options, work);
    if (!starts_tasks && !asked.observers.only_plan()) check_starts_no_tasks(asked.cluster);
    if (!starts_tasks || !leaves_shape_open(*values, asked.cluster)) return run_process(asked);
    const auto with = [&](const std::vector<std::string>& flags) {
      return program_run_of(*parse_job(line, flags, nullptr), flags, options, work);
    };
    return run_process(with(with_fastest_shape(arguments, *values, compared_by(asked),
                                               [&](const auto& flags) { with(flags); })));
  });
}

}  // namespace

std::int64_t batches_of_step(const Cluster& cluster) {
  const StrategyKind& kind = strategy_kind(cluster);
  const int needed = cluster.strategy.replicas > 0 ? cluster.strategy.replicas : cluster.workers();
  const bool rounds = kind.exact() && kind.in_rounds(cluster.strategy);
  return std::int64_t{cluster.towers} * cluster.train.accumulate * (rounds ? needed : 1);
}

bool computes(const DeviceChoice& device) {
  return !device_kind(device.kind).is_simulated || device.sim_compute;
}

int run_program(
    int argc, char** argv, const ProgramOptions& options,
    const std::function<void(const Cluster&, const RunOptions&, const Settings&)>& work) {
  prepare_standard_streams();
  return report_errors([&] { return run_with_flags({argv, argv + argc}, options, work, true); });
}

int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work) {
  return run_program(
      argc, argv, {},
      [&](const Cluster& cluster, const RunOptions& run, const Settings&) { work(cluster, run); });
}

class ProgramTask::Impl {
 public:
  Impl(const std::vector<std::string>& words, const ProgramOptions& program)
      : options(program), thread([this, words] { run_job(words); }) {
    wait();
    if (!failure) return;
    thread.join();
    std::rethrow_exception(failure);
  }
  ~Impl() {
    if (thread.joinable()) thread.join();
  }
  void end(std::exception_ptr error) {
    if (status) return;
    {
      const std::lock_guard lock(mutex);
      own_error = std::move(error);
      works = false;
    }
    changed.notify_all();
    wait();
  }

  const ProgramOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  bool works = false;         // from the beginning of work() until end()
  std::optional<int> status;  // once all is over
  const Cluster* cluster = nullptr;
  const RunOptions* run = nullptr;
  const Settings* settings = nullptr;
  // The error that the program gave to end(), and the failure that came before its work began.
  std::exception_ptr own_error, failure;
  bool worked = false;
  std::thread thread;

 private:
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return works || status; });
  }
  // Waits for end() while the program trains on another thread.
  void work(const Cluster& on, const RunOptions& with, const Settings& by) {
    std::unique_lock lock(mutex);
    cluster = &on;
    run = &with;
    settings = &by;
    works = worked = true;
    changed.notify_all();
    changed.wait(lock, [this] { return !works; });
    if (own_error) std::rethrow_exception(std::exchange(own_error, nullptr));
  }
  void run_job(const std::vector<std::string>& words) {
    int ended = 1;
    std::exception_ptr error;
    try {
      const Work working = [this](const Cluster& on, const RunOptions& with, const Settings& by) {
        work(on, with, by);
      };
      ended = run_with_flags(words, options, working, false);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    if (!worked) failure = error;
    status = ended;
    changed.notify_all();
  }
};

ProgramTask::ProgramTask(const std::vector<std::string>& arguments, const ProgramOptions& options)
    : impl_(std::make_unique<Impl>(arguments, options)) {}

ProgramTask::~ProgramTask() { impl_->end({}); }

std::optional<int> ProgramTask::status() const { return impl_->status; }
const Cluster& ProgramTask::cluster() const { return *impl_->cluster; }
const RunOptions& ProgramTask::run() const { return *impl_->run; }
const Settings& ProgramTask::settings() const { return *impl_->settings; }
void ProgramTask::end(std::exception_ptr error) { impl_->end(std::move(error)); }

}  // namespace paceline
