#include "tools/predicted_command.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "checkpoint/input_file.h"
#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/lab_reader.h"
#include "cli/flags/path_flags.h"
#include "cli/flags/run_options_reader.h"
#include "launch/launcher.h"
#include "launch/running_task.h"
#include "paceline/error.h"
#include "predict/hosts_file.h"
#include "tools/predicted_model.h"

namespace paceline {
namespace {

constexpr const char* kExample = "paceline predict --hosts hosts.toml -- python train.py";
constexpr int kInterruptedStatus = 130;

/// Starts a command, with the descriptors and the environment of this process, and waits for it.
/// Signals that a terminal sends reach both of them; others are passed on.
class Awaited {
 public:
  Awaited() {
    sigemptyset(&signals_);
    for (const int one : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, one);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Awaited() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Awaited(const Awaited&) = delete;
  Awaited& operator=(const Awaited&) = delete;

  /// Throws kUsage when it cannot be run.
  ExitStatus run(Arguments command) const {
    const pid_t pid = start(command);
    while (true) {
      int status = 0;
      if (waitpid(pid, &status, WNOHANG) == pid) {
        return WIFSIGNALED(status) ? ExitStatus{.signal = WTERMSIG(status)}
                                   : ExitStatus{.code = WEXITSTATUS(status)};
      }
      siginfo_t seen = {};
      if (sigwaitinfo(&signals_, &seen) < 0) continue;
      if (seen.si_signo != SIGCHLD && seen.si_code != SI_KERNEL) kill(pid, seen.si_signo);
    }
  }

 private:
  pid_t start(Arguments& command) const {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &before_);
    pid_t pid = -1;
    const int error =
        posix_spawnp(&pid, words.front(), nullptr, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) return pid;
    throw Error(ErrorCode::kUsage, fmt::format("{} cannot be run: {}", command.front(),
                                               std::generic_category().message(error)));
  }

  sigset_t signals_ = {}, before_ = {};
};

// Wherever the command goes, paths are those of this process.
std::string flags_in_json(const CommandLine& line, const FlagValues& values,
                          const std::string& json) {
  Arguments words;
  for (const auto& [name, value] : values.listed()) {
    if (values.is_open(name) || name == "--config" || name == "--json") continue;
    words.push_back(name);
    if (value.empty()) continue;
    const auto flag = std::ranges::find(line.flags, name, &Flag::name);
    words.push_back(names_path(flag->placeholder) ? std::filesystem::absolute(value).string()
                                                  : value);
  }
  words.insert(words.end(), {"--json", json});
  return task_variable(words);
}

[[noreturn]] void say_why_not(const ExitStatus& ended) {
  if (ended.signal == SIGINT || ended.code == kInterruptedStatus) {
    throw Error(ErrorCode::kCancelled, "interrupted: nothing is predicted");
  }
  throw Error(ErrorCode::kFailedPrecondition,
              ended.good() ? "nothing is predicted: the command has ended, and made no ten steps "
                             "with a store in one process (paceline.Store, paceline.torch, an "
                             "ExternalStore) and called no run_program"
                           : fmt::format("nothing is predicted: the command failed before it had "
                                         "made the ten steps of a prediction ({}); what it has "
                                         "printed says why",
                                         ended.str()));
}

}  // namespace

CommandLine predicted_command_line() {
  CommandLine line;
  line.name = "paceline predict";
  line.about =
      "paceline predict [FLAGS] -- COMMAND\n\n"
      "Predicts how fast each way to distribute a command's training would be, and what limits it. "
      "The command is any that trains with a store (paceline.Store, paceline.torch, an "
      "ExternalStore) or with run_program. With a store it makes ten steps in one process, which "
      "leave nothing behind, and ends; from them the sizes of the variables, the order and the "
      "moments in which the model needs them and has their gradients, and the time of a step are "
      "known. The flags here are those of paceline predict MODEL, and count in place of the "
      "command's own; the command's own strategy does not count.";
  line.examples = R"(Examples:
  paceline predict -- python train.py
      on this machine: every strategy, 1 to all workers
  paceline predict --hosts hosts.toml --json ways.json -- python train.py
      on other hosts, as docs/predictions.md describes them
  paceline predict --ps 1 --workers 4 --lab-gbps 1 --lab-hosts 5 -- python train.py
      on hosts with links of 1 Gbit/s
  paceline predict --strategy sync --wire bfloat16 -- python train.py
      one strategy, with another wire

Exit status: 0 if the table was printed, 1 if not, 2 if used wrongly, 130 after Ctrl-C.)";
  for (const auto& flags : {run_flags(), cluster_flags()}) {
    std::ranges::copy_if(flags, std::back_inserter(line.flags), [](const Flag& flag) {
      return is_of_predictions(flag) && flag.name != "--no-trial";  // the steps are the trial
    });
  }
  line.flags.push_back({"--predict", "", "", ""});
  return line;
}

void predict_command_of(const Arguments& arguments) {
  const CommandLine line = predicted_command_line();
  Arguments words = {"--predict"};
  words.insert(words.end(), arguments.begin(), std::ranges::find(arguments, "--"));
  const std::optional<FlagValues> values = parse_job(line, words, nullptr);
  if (!values) return;
  const Arguments command = command_after(arguments, kExample);
  values->with_places([&] {
    read_lab(*values, read_cluster(*values));
    read_run_options(*values);
    const PredictionOptions prediction = read_observer_options(*values).prediction;
    if (!prediction.hosts.empty()) read_hosts(prediction.hosts);
    if (!prediction.roof.empty()) read_roof_file(prediction.roof);
  });
  const TemporaryFolder folder;
  const std::string ways = folder.path("ways.json");
  setenv("PACELINE_PREDICT", flags_in_json(line, *values, ways).c_str(), 1);
  const ExitStatus ended = Awaited().run(command);
  if (!std::filesystem::exists(ways)) say_why_not(ended);
  if (!values->given("--json")) return;
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  write_text_file("the prediction", values->text("--json"), read_text(ways, kMostBytes));
}

}  // namespace paceline
