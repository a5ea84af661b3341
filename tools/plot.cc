#include <fmt/format.h>
#include <unistd.h>

#include <sys/wait.h>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cluster/command_line.h"
#include "paceline/error.h"
#include "tools/plot_script.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr int kNoSuchCommand = 127;  // a shell's exit status

CommandLine plot_flags() {
  return {
      "paceline plot",
      "Draws loss, perplexity and speed of runs from their event files, over the global step; of "
      "one run also where the time went. Calls gnuplot (Debian: gnuplot-nox).",
      R"(RUN is the --out folder of a run, its summaries/, or any folder with event files.

Examples:
  paceline plot out --out run.svg
  paceline plot alone cluster --out both.png)",
      {{"RUN", "RUN…", "A run's folder; several are drawn together", "Plot", true},
       {"--out", "FILE", "The picture: FILE.svg or FILE.png", "Plot"}}};
}

std::string terminal_for(const std::string& out) {
  if (out.empty()) {
    throw Error(ErrorCode::kUsage, "--out FILE.svg or FILE.png is missing: where the picture goes");
  }
  if (out.ends_with(".svg")) return "svg";
  if (out.ends_with(".png")) return "pngcairo";
  refuse_flag("--out", out, "must end with .svg or .png");
}

/// A script that is there while gnuplot reads it.
class ScriptFile {
 public:
  explicit ScriptFile(const std::string& text) {
    path_ = std::filesystem::temp_directory_path() / "paceline-plot-XXXXXX";
    const int file = mkstemp(path_.data());
    if (file >= 0) close(file);
    std::ofstream stream(path_, std::ios::trunc);
    stream << text << std::flush;
    if (file < 0 || !stream) {
      throw Error(ErrorCode::kUnavailable, fmt::format("cannot write {}", path_));
    }
  }
  ~ScriptFile() { std::remove(path_.c_str()); }
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ran {
  int status = 0;
  std::string output;
};

Ran run_gnuplot(const std::string& script) {
  std::FILE* pipe = popen(fmt::format("gnuplot '{}' 2>&1", script).c_str(), "r");
  if (pipe == nullptr) throw Error(ErrorCode::kUnavailable, "no process can be started");
  Ran ran;
  std::array<char, 4096> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    ran.output.append(piece.data(), count);
  }
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return ran;
}

void draw(const std::vector<PlottedRun>& runs, const std::string& out) {
  const std::string unfinished = out + ".part";
  const ScriptFile script(plot_script(runs, terminal_for(out), unfinished));
  const Ran ran = run_gnuplot(script.path());
  if (ran.status == kNoSuchCommand) {
    throw Error(ErrorCode::kNotFound,
                "gnuplot, which draws the picture, is not installed: apt-get install gnuplot-nox");
  }
  std::error_code error;
  if (ran.status == 0) std::filesystem::rename(unfinished, out, error);
  if (ran.status == 0 && !error) return;
  std::filesystem::remove(unfinished, error);
  throw Error(ErrorCode::kUnavailable,
              fmt::format("gnuplot could not draw {}: {}", out, ran.output));
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
