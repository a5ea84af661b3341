#include "cli/flags/run_options_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "base/address.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/prediction_reader.h"
#include "run/program_run.h"

namespace paceline {
namespace {

void read_timeline(const FlagValues& values, RunOptions& run) {
  if (!values.given("--out")) {
    check_together(values, "--timeline-steps", "--timeline", "the file that shows them");
  }
  run.timeline = values.text("--timeline");
  if (values.given("--timeline")) check_new_file("--timeline", run.timeline);
  if (!values.given("--timeline-steps")) return;
  const std::string text = values.text("--timeline-steps");
  const char* const end = text.data() + text.size();
  const auto [colon, no_first] = std::from_chars(text.data(), end, run.timeline_first);
  const bool colon_there = no_first == std::errc() && colon != end && *colon == ':';
  const auto [last, no_end] = std::from_chars(colon_there ? colon + 1 : end, end, run.timeline_end);
  if (no_end != std::errc() || last != end || run.timeline_first < 0 ||
      run.timeline_end <= run.timeline_first) {
    refuse_flag("--timeline-steps", text,
                "must be the first step and the one after the last, such as 10:30");
  }
}

// Reads "HOST:PORT", ":PORT" or "PORT". Without a host, only this machine can reach the page.
std::string read_dashboard(const FlagValues& values) {
  if (!values.given("--dashboard")) return "";
  std::string text = values.text("--dashboard");
  if (text.find_first_not_of("0123456789") == std::string::npos) text = ":" + text;
  if (text.starts_with(':')) text = "127.0.0.1" + text;
  return read_flag("--dashboard", [&] { return text_of(parse_address(text)); });
}

// Without a token, anyone who reaches the page may read it. Without encryption, so may anyone who
// sees the token on its way.
void read_page_security(const FlagValues& values, DashboardOptions& page) {
  for (const char* flag : {"--dashboard-token", "--dashboard-cert", "--dashboard-key"})
    check_together(values, flag, "--dashboard", "the address of the page");
  check_together(values, "--dashboard-cert", "--dashboard-key", "the certificate's private key");
  check_together(values, "--dashboard-key", "--dashboard-cert", "the certificate");
  const bool from_elsewhere = !page.at.empty() && !is_loopback(page.at);
  const bool task_has_certificate = values.given("--tls-cert") && values.given("--tls-key");
  const bool as_task = from_elsewhere && task_has_certificate && !values.given("--dashboard-cert");
  page.token = values.text("--dashboard-token");
  page.certificate = values.text(as_task ? "--tls-cert" : "--dashboard-cert");
  page.key = values.text(as_task ? "--tls-key" : "--dashboard-key");
  if (!from_elsewhere) return;
  if (!values.given("--dashboard-token") ||
      (page.certificate.empty() && !values.given("--insecure"))) {
    refuse_flag(
        "--dashboard", values.text("--dashboard"),
        fmt::format("other hosts reach it: give --dashboard-token FILE, which whoever asks must "
                    "know, and --dashboard-cert FILE with --dashboard-key FILE, which encrypt it "
                    "(or --insecure, which leaves it in the clear); or leave the host out, and "
                    "`ssh -L PORT:localhost:{} HOST` reaches it encrypted",
                    parse_address(page.at).port));
  }
}

SummaryOf read_summary_of(const std::string& text) {
  SummaryOf of;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view kind = std::string_view(text).substr(begin, end - begin);
    if (kind == "gradients") {
      of.gradients = true;
    } else if (kind == "activations") {
      of.activations = true;
    } else if (kind == "images") {
      of.images = true;
    } else {
      refuse_flag("--summary-of", text,
                  "must be some of gradients, activations, images, with commas between");
    }
    begin = end + 1;
  }
  return of;
}

// Reads "loss/valid" or "precision/valid:max". Numbers that should be large need ":max" or ":min",
// since the default, the smallest, would keep the worst checkpoint.
KeepBest read_keep_best(const std::string& text) {
  KeepBest best{text, false};
  const std::size_t colon = text.rfind(':');
  if (colon != text.npos) {
    const std::string direction = text.substr(colon + 1);
    if (direction != "min" && direction != "max") {
      refuse_flag("--keep-best", text,
                  fmt::format("'{}' is neither min nor max: NAME:min keeps the smallest, NAME:max "
                              "the largest",
                              direction));
    }
    best = {text.substr(0, colon), direction == "max"};
  }
  if (best.name.empty()) {
    refuse_flag("--keep-best", text, "must be the name of a number, such as loss/valid");
  }
  for (const char* more_is_better : {"accuracy", "precision", "recall"}) {
    if (colon != text.npos || text.find(more_is_better) == text.npos) continue;
    refuse_flag(
        "--keep-best", text,
        fmt::format("say whether the largest is the best ({0}:max) or the smallest ({0}:min)",
                    text));
  }
  return best;
}

void read_what_is_left(const FlagValues& values, RunOptions& run) {
  run.report = values.text("--report");
  if (values.given("--report")) check_new_file("--report", run.report);
  run.out = values.text("--out");
  if (values.given("--out") && run.out.empty()) refuse_flag("--out", "", "must be a folder");
  for (const char* flag : {"--resume", "--overwrite", "--save-every", "--keep", "--keep-best",
                           "--summary-every", "--summary-of"}) {
    check_together(values, flag, "--out", "the folder that a run writes to");
  }
  check_apart(values, "--resume", "--overwrite", "one keeps the checkpoints, the other deletes");
  run.resume = values.given("--resume");
  run.overwrite = values.given("--overwrite");
  run.save_every = values.interval("--save-every").value_or(run.save_every);
  run.summary_every = values.interval("--summary-every").value_or(run.summary_every);
  if (values.given("--summary-of")) run.summary_of = read_summary_of(values.text("--summary-of"));
  run.keep = int(values.whole_number("--keep", 1, INT32_MAX).value_or(run.keep));
  if (values.given("--keep-best")) run.keep_best = read_keep_best(values.text("--keep-best"));
  check_together(values, "--init-only", "--init-from", "the checkpoint with the values");
  run.init_from = values.text("--init-from");
  run.init_only = values.all("--init-only");
}

}  // namespace

RunOptions read_run_options(const FlagValues& values) {
  RunOptions run;
  check_apart(values, "--steps", "--seconds", "each says when the run ends");
  run.steps = values.whole_number("--steps", 1, INT64_MAX);
  run.seconds = values.positive_number("--seconds");
  run.seed = std::uint64_t(values.whole_number("--seed", 0, INT64_MAX).value_or(1));
  read_what_is_left(values, run);
  read_timeline(values, run);
  run.predicts = values.given("--predict");
  if (values.given("--copy-gate")) own_program_run(run).copy_gate = values.text("--copy-gate");
  if (values.given("--lab-hosts") || values.given("--lab-place")) {
    own_program_run(run).link_gbps = values.positive_number("--lab-gbps").value_or(1);
  }
  run.fused_update = !values.given("--no-fused-update");
  run.quiet = values.given("--quiet");
  own_program_run(run).log_level =
      values.choice("--log-level", {"debug", "info", "warning", "error"})
          .value_or(run.quiet ? "warning" : "info");
  own_program_run(run).log_format =
      values.choice("--log-format", {"text", "json"}).value_or("text");
  return run;
}

ObserverOptions read_observer_options(const FlagValues& values) {
  ObserverOptions observers;
  observers.dashboard.at = read_dashboard(values);
  read_page_security(values, observers.dashboard);
  observers.dry_run = values.given("--dry-run");
  observers.prediction = read_prediction(values);
  return observers;
}

}  // namespace paceline
