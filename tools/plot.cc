#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "cluster/flags/command_line.h"
#include "paceline/error.h"
#include "tools/plot_script.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

CommandLine plot_flags() {
  return {"paceline plot",
          "Draws the loss, perplexity and speed of runs over the global step, from their event "
          "files; for "
          "one run also where the time went. Needs gnuplot (Debian: gnuplot-nox).",
          R"(RUN is the --out folder of a run, its summaries/, or any folder with event files.

Examples:
  paceline plot out --out run.svg
  paceline plot alone cluster --out both.png)",
          {{"RUN", "RUN…", "The folder of a run; several runs are drawn together", "Plot", true},
           {"--out", "FILE", "The picture to write: FILE.svg or FILE.png", "Plot"}}};
}

std::string terminal_for(const std::string& out) {
  if (out.empty()) {
    throw Error(ErrorCode::kUsage, "--out FILE.svg or FILE.png is missing: where the picture goes");
  }
  if (out.ends_with(".svg")) return "svg";
  if (out.ends_with(".png")) return "pngcairo";
  refuse_flag("--out", out, "must end with .svg or .png");
}

struct Ran {
  int not_started = 0;  // why not, as errno
  bool well = false;
  std::string output;
};

// gnuplot's script and its messages are in the folder.
Ran run_gnuplot(const TemporaryFolder& folder, const std::string& script) {
  std::string program = "gnuplot", script_path = folder.path("script");
  const std::string said = folder.path("said");
  write_text_file("gnuplot's script", script_path, script);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, said.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  char* const words[] = {program.data(), script_path.data(), nullptr};
  pid_t pid = -1;
  Ran ran;
  ran.not_started = posix_spawnp(&pid, program.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (ran.not_started != 0) return ran;
  int status = 0;
  pid_t ended = -1;
  while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR) continue;
  ran.well = ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::ifstream file(said);
  ran.output.assign(std::istreambuf_iterator<char>(file), {});
  return ran;
}

// gnuplot reports no error when a disk is full, so the end of the file is checked.
bool is_whole(const std::string& picture) {
  constexpr std::streamoff kEndBytes = 16;
  std::ifstream file(picture, std::ios::binary);
  file.seekg(-kEndBytes, std::ios::end);
  std::string end(kEndBytes, '\0');
  file.read(end.data(), kEndBytes);
  return file && (end.find("</svg>") != std::string::npos || end.find("IEND") != std::string::npos);
}

void draw(const std::vector<PlottedRun>& runs, const std::string& out) {
  const std::string unfinished = out + ".part";
  const TemporaryFolder folder;
  const Ran ran = run_gnuplot(folder, plot_script(runs, terminal_for(out), unfinished));
  if (ran.not_started == ENOENT) {
    throw Error(ErrorCode::kNotFound,
                "gnuplot, which draws the picture, is not installed: apt-get install gnuplot-nox");
  }
  if (ran.not_started != 0) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("gnuplot could not be started: {}",
                            std::generic_category().message(ran.not_started)));
  }
  std::error_code error;
  const bool whole = is_whole(unfinished);
  if (ran.well && whole) std::filesystem::rename(unfinished, out, error);
  if (ran.well && whole && !error) return;
  std::filesystem::remove(unfinished, error);
  throw Error(ErrorCode::kUnavailable,
              fmt::format("gnuplot could not draw {}: {}", out,
                          ran.well && !whole ? "the picture is not whole (is the disk full?)"
                                             : ran.output));
}

}  // namespace

std::vector<CommandLine> plot_lines() { return {plot_flags()}; }

int plot_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(plot_flags(), arguments);
  if (!values) return 0;
  const std::string out = values->text("--out");
  terminal_for(out);
  check_new_file("--out", out);
  std::vector<PlottedRun> runs;
  for (const std::string& run : values->all("RUN")) runs.push_back({run, read_summaries(run)});
  draw(runs, out);
  fmt::print("{}\n", out);
  return 0;
}

}  // namespace paceline
