#include "bench/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace paceline::bench {
namespace {

const char* const kClearLine = "\r\033[K";

}  // namespace

Recorder::Recorder() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Recorder::begin(const std::string& table, int repeats) {
  repeats_ = repeats;
  if (!tables_.empty()) print("");
  tables_.push_back({table, {}});
  print(table);
}

void Recorder::add(Figure figure) {
  print(line_of(figure));
  tables_.back().figures.push_back(std::move(figure));
}

void Recorder::note(const std::string& text) { print("  " + text); }

void Recorder::progress(const std::string& text) {
  if (!terminal_) return;
  fmt::print(stderr, "{}measuring {} …", kClearLine, text);
  std::fflush(stderr);
}

void Recorder::print(const std::string& line) {
  if (terminal_) fmt::print(stderr, "{}", kClearLine);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace paceline::bench
