#include "run/report/circumstances.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <fstream>
#include <sstream>
#include <string_view>

#include "paceline/version.h"

namespace paceline {
namespace {

// Returns the seconds since this process began. The system tells the process's start in clock ticks
// since the machine was started.
double seconds_of_process() {
  // The number of fields from behind the program's name, which may hold blanks, to the start time.
  constexpr int kFieldsToStart = 20;
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  for (int i = 0; i < kFieldsToStart; ++i) fields >> field;
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double ticks = field.empty() ? 0 : std::stod(field);
  return double(now.tv_sec) - ticks / double(sysconf(_SC_CLK_TCK));
}

std::vector<std::string> words_of_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// Returns the word, quoted if a shell would otherwise not take it as one word.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "unknown";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::vector<std::string> without_launchers_words(std::vector<std::string> words) {
  words.erase(std::ranges::find(words, "--launched"), words.end());
  return words;
}

Circumstances circumstances() {
  const std::time_t started = std::time(nullptr) - std::time_t(seconds_of_process());
  return {version_and_commit(), host_name(),
          fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(started)),
          shell_words(without_launchers_words(words_of_process()))};
}

}  // namespace paceline
