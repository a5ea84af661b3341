#include "run/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/memory_file.h"
#include "base/text_file.h"
#include "paceline/error.h"
#include "run/usage_errors.h"

namespace paceline {
namespace {

struct Ran {
  int not_started = 0;  // errno if gnuplot was not started; else 0
  bool well = false;
  std::string output;
};

// Runs gnuplot; its script and its messages are files in memory.
Ran run_gnuplot(const std::string& script) {
  const MemoryFile script_file, said;
  std::string program = "gnuplot", script_path = script_file.path();
  write_text_file("gnuplot's script", script_path, script);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, said.path().c_str(), O_WRONLY, 0);
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
  ran.output = said.text();
  return ran;
}

// Checks that the picture has its end, since gnuplot reports no error when there is no room.
bool is_whole(std::string_view picture) {
  constexpr std::size_t kEndBytes = 16;
  if (picture.size() < kEndBytes) return false;
  const std::string_view end = picture.substr(picture.size() - kEndBytes);
  return end.find("</svg>") != end.npos || end.find("IEND") != end.npos;
}

}  // namespace

std::string terminal_for(const std::string& flag, const std::string& out) {
  if (out.empty()) {
    throw Error(ErrorCode::kUsage,
                flag + " FILE.svg or FILE.png is missing: where the picture goes");
  }
  if (out.ends_with(".png")) return "pngcairo";
  if (out.ends_with(".svg") || is_written_through(out)) return "svg";
  refuse_flag(flag, out, "must end with .svg or .png");
}

std::string drawn_by_gnuplot(const std::string& out, const GnuplotScript& script) {
  const MemoryFile picture;
  const std::string terminal = out.ends_with(".png") ? "pngcairo" : "svg";
  const Ran ran = run_gnuplot(script(terminal, picture.path()));
  if (ran.not_started == ENOENT) {
    throw Error(ErrorCode::kNotFound,
                "gnuplot, which draws the picture, is not installed: apt-get install gnuplot-nox");
  }
  if (ran.not_started != 0) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("gnuplot could not be started: {}",
                            std::generic_category().message(ran.not_started)));
  }
  std::string text = picture.text();
  if (ran.well && is_whole(text)) return text;
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("gnuplot could not draw {}: {}", out,
                  ran.well ? "the picture is not whole (is there no memory left?)" : ran.output));
}

}  // namespace paceline
