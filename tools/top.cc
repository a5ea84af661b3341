#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/address.h"
#include "base/plain_text.h"
#include "cli/flags/command_line.h"
#include "cli/flags/flag_checks.h"
#include "dashboard/access_token.h"
#include "dashboard/http_get.h"
#include "dashboard/live_text.h"
#include "dashboard/terminal_view.h"
#include "net/poll/poll_until.h"
#include "paceline/error.h"
#include "run/interrupt.h"
#include "run/report/report.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr Duration kEvery = std::chrono::seconds(1), kAnswersWithin = std::chrono::seconds(5);
constexpr int kUsualColumns = 110;
// The characters shown of an answer that is not a page's.
constexpr std::size_t kMostOfAnswer = 200;

CommandLine top_flags() {
  return {
      "paceline top",
      "Shows the tasks of a run, its speed beside the expected one, and where its time goes: "
      "once a second on a terminal while it trains, until Ctrl-C; else once. A run that trains "
      "is shown when it was started with --dashboard.",
      R"(RUN is the --out folder of a run, its report.json, or the address of its dashboard.

Examples:
  paceline top http://127.0.0.1:8080
  paceline top https://trainer:8080 --dashboard-token token --dashboard-ca ca.pem
  paceline top out
  paceline top out --once)",
      {{"RUN", "URL|RUN", "The address of a dashboard, the folder of a run, or a report", "Top"},
       {"--dashboard-token", "FILE",
        "The token of a dashboard that needs one, which only you may read", "Top"},
       {"--dashboard-ca", "FILE",
        "The certificate of the authority that signed that of an https dashboard, PEM; without it "
        "the system's authorities are trusted",
        "Top"},
       {"--once", "", "Print the run as it is now, and end", "Top"}}};
}

// Browsers show the address of a page with a '/' at the end.
std::string without_last_slash(std::string address) {
  if (address.ends_with('/')) address.pop_back();
  return address;
}

bool is_address(const std::string& text) {
  try {
    return parse_address(text).port != 0;
  } catch (const Error&) {
    return false;
  }
}

void check_run(const std::string& run) {
  if (is_http_url(run)) return;
  // Errors are ignored: a file that may not be looked at counts as missing.
  std::error_code unseen;
  if (!std::filesystem::exists(run, unseen) && is_address(without_last_slash(run))) {
    refuse_flag(
        "RUN", run,
        fmt::format("there is no such folder; for a dashboard, write http://{} or https://{}", run,
                    run));
  }
}

// Returns the address of the page that the run's folder names; empty if the run has no page.
std::string url_of(const std::string& run) {
  if (is_http_url(run)) return run;
  std::string url;
  std::ifstream file(run + "/dashboard");
  std::getline(file, url);
  return url;
}

/// The state of a run, and whether the run still goes on.
struct State {
  std::string json;
  bool live = false;
};

// Returns the state from the run's page or, if that is not reached, from its report: if a run was
// killed, its folder may still name the address of its page.
State state_of(const std::string& run, const HttpCaller& caller) {
  const std::string url = url_of(run);
  std::optional<Error> not_reached;
  if (!url.empty()) {
    try {
      const HttpResponse answer =
          http_get(url + "/state.json", Deadline::after(kAnswersWithin), caller);
      if (answer.status == 200) return {answer.body, true};
      not_reached = Error(
          ErrorCode::kUnavailable,
          fmt::format("{} answers: {}", url, plain_text(answer.body.substr(0, kMostOfAnswer))));
    } catch (const Error& error) {
      not_reached = error;
    }
    if (is_http_url(run)) throw *not_reached;
  }
  try {
    return {state_json(read_report(run)), false};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: {}{}", run,
                            not_reached ? not_reached->what()
                                        : std::string("no run with --dashboard trains there"),
                            ", and there is no report of a run that has ended"));
  }
}

winsize terminal_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = kUsualColumns;
  return size;
}

bool is_terminal() { return isatty(STDOUT_FILENO) == 1; }

// Returns the width of the terminal. If the output is not a terminal, returns the largest int, so
// that no line is cut and a command in a line stays whole.
int columns() {
  return is_terminal() ? int(terminal_size().ws_col) : std::numeric_limits<int>::max();
}

// Returns the first rows of the text, as many as the terminal has.
std::string first_rows(const std::string& text) {
  std::size_t end = 0;
  for (int row = 0; row < int(terminal_size().ws_row) && end != std::string::npos; ++row) {
    end = text.find('\n', end == 0 ? 0 : end + 1);
  }
  return end == 0 ? text : text.substr(0, end);
}

// Shows the terminal's alternate screen, so that the earlier lines reappear afterwards.
class Screen {
 public:
  Screen() { write("\x1b[?1049h\x1b[?25l"); }
  ~Screen() { write("\x1b[?25h\x1b[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static void show(const std::string& text) { write("\x1b[H\x1b[J" + text); }

 private:
  static void write(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
};

// Shows the run until it has ended or the user stops. Returns the last state that was seen.
State follow(const std::string& run, const HttpCaller& caller, State state) {
  const Interrupt interrupt;
  const Screen screen;
  while (state.live) {
    Screen::show(first_rows(terminal_view(state.json, columns(), true)));
    if (wait_to_read(interrupt.fd(), Deadline::after(kEvery))) break;
    try {
      state = state_of(run, caller);
    } catch (const Error&) {
      // The run has ended, and left no report here.
      break;
    }
  }
  return state;
}

}  // namespace

std::vector<CommandLine> top_lines() { return {top_flags()}; }

int top_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(top_flags(), arguments);
  if (!values) return 0;
  std::string run = values->text("RUN");
  check_run(run);
  if (is_http_url(run)) run = without_last_slash(run);
  HttpCaller caller{.authority = values->text("--dashboard-ca")};
  if (values->given("--dashboard-token")) {
    caller.token = read_flag("--dashboard-token",
                             [&] { return read_access_token(values->text("--dashboard-token")); });
  }
  State state = state_of(run, caller);
  if (is_terminal() && !values->given("--once")) state = follow(run, caller, std::move(state));
  fmt::print("{}", terminal_view(state.json, columns(), is_terminal()));
  return 0;
}

}  // namespace paceline
