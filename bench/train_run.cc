#include "bench/train_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/memory_file.h"
#include "paceline/error.h"

namespace paceline::bench {
namespace {

constexpr int kCannotExecute = 127;

// Returns the environment without $TF_CONFIG, so that the command line alone decides what runs.
std::vector<char*> environment() {
  std::vector<char*> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("TF_CONFIG=")) variables.push_back(*each);
  }
  variables.push_back(nullptr);
  return variables;
}

// Returns the path of the command `paceline`: this program, or the one in its folder.
std::string command_path() {
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "paceline";
  if (std::filesystem::exists(path)) return path;
  throw Error(ErrorCode::kNotFound,
              fmt::format("[bench] there is no command {}: it makes the runs", path.string()));
}

// Starts the program, which is the first word, without standard output; the user sees its errors.
// The program ends when this process ends.
pid_t start(std::vector<std::string> given) {
  std::vector<char*> words;
  words.reserve(given.size() + 1);
  for (std::string& word : given) words.push_back(word.data());
  words.push_back(nullptr);
  std::vector<char*> variables = environment();
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kCannotExecute);
    dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    execve(words.front(), words.data(), variables.data());
    _exit(kCannotExecute);
  }
  if (pid > 0) return pid;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("[bench] cannot start {}", fmt::join(given, " ")));
}

void wait_for(pid_t pid, const std::string& what) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw Error(ErrorCode::kFailedPrecondition, fmt::format("[bench] {} failed", what));
}

/// A started run, which writes a report.
class ReportedRun {
 public:
  explicit ReportedRun(std::vector<std::string> arguments, const TaskPlace& place = {},
                       std::size_t task = 0) {
    arguments.insert(arguments.end(), {"--report", file_.path()});
    // Lines that say who listens and who joined would clutter the figures.
    if (std::ranges::none_of(arguments,
                             [](const auto& word) { return word.starts_with("--log-level"); }))
      arguments.insert(arguments.end(), {"--log-level", "warning"});
    command_ = fmt::format("paceline {}", fmt::join(arguments, " "));
    arguments.insert(arguments.begin(), command_path());
    pid_ = start(place ? place(task, arguments) : arguments);
  }

  /// Waits until the run ends.
  Report report() const {
    wait_for(pid_, command_);
    return read_report(file_.path());
  }

 private:
  const MemoryFile file_;
  std::string command_;
  pid_t pid_ = -1;
};

}  // namespace

Report run_train(std::vector<std::string> arguments) {
  const ReportedRun run(std::move(arguments));
  return run.report();
}

Report run_tasks(const std::vector<std::vector<std::string>>& tasks,
                 std::chrono::milliseconds apart, const TaskPlace& place) {
  std::vector<std::unique_ptr<const ReportedRun>> runs;
  for (const std::vector<std::string>& task : tasks) {
    if (!runs.empty()) std::this_thread::sleep_for(apart);
    runs.push_back(std::make_unique<const ReportedRun>(task, place, runs.size()));
  }
  std::vector<Report> reports;
  reports.reserve(runs.size());
  for (const auto& run : runs) reports.push_back(run->report());
  return merge(reports);
}

double value_of(const Report& report, const std::string& section, const std::string& key) {
  if (const std::optional<double> value = report.value(section, key)) return *value;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[bench] the report of a run has no {} of {}", key, section));
}

double peak_memory(const Report& report) {
  double peak = 0;
  for (const TaskReport& task : report.tasks) {
    if (!task.use.peak_memory) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("[bench] {} cannot say how much memory it used", task.task));
    }
    peak = std::max(peak, *task.use.peak_memory);
  }
  return peak;
}

double total_steps_per_s(const Report& report) {
  double total = 0;
  for (const TaskReport& task : report.tasks) {
    if (!task.is_worker()) continue;
    if (!task.steps_per_s) {
      throw Error(
          ErrorCode::kFailedPrecondition,
          fmt::format("[bench] {} made no timed step: give it more --seconds or --steps (the "
                      "first 10 are not timed)",
                      task.task));
    }
    total += *task.steps_per_s;
  }
  return total;
}

}  // namespace paceline::bench
