#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/text_file.h"
#include "cli/flags/command_line.h"
#include "cli/flags/number_text.h"
#include "paceline/error.h"

namespace paceline {

namespace {

// True if the message names the flag; "--task-index 3: …" does not name "--task".
bool names(std::string_view message, std::string_view flag) {
  for (std::size_t at = message.find(flag); at != message.npos; at = message.find(flag, at + 1)) {
    const std::size_t end = at + flag.size();
    const bool longer = end < message.size() &&
                        (std::isalnum(int(std::uint8_t(message[end]))) != 0 || message[end] == '-');
    if (!longer) return true;
  }
  return false;
}

}  // namespace

bool is_internal(const std::string& flag) {
  return flag == "--launched" || flag == "--one-task" || flag == "--placed";
}

void check_new_file(const std::string& flag, const std::string& path) {
  if (is_written_through(path)) {
    if (access(path.c_str(), W_OK) != 0) refuse_flag(flag, path, "cannot be written to");
    return;
  }
  std::filesystem::path folder = std::filesystem::path(behind_links(path)).parent_path();
  if (folder.empty()) folder = ".";
  // This error is ignored: a folder that cannot be looked at counts as no folder.
  std::error_code unseen;
  if (!std::filesystem::is_directory(folder, unseen)) {
    refuse_flag(flag, path, fmt::format("there is no folder {}", folder.string()));
  }
  if (std::filesystem::is_directory(path, unseen))
    refuse_flag(flag, path, "is a folder, not a file");
  if (access(folder.c_str(), W_OK) != 0) {
    refuse_flag(flag, path, fmt::format("folder {} cannot be written to", folder.string()));
  }
  if (const std::string why = why_none_is_made_beside(path); !why.empty()) {
    refuse_flag(flag, path,
                fmt::format("no file can be made in folder {}: {}", folder.string(), why));
  }
}

void FlagValues::add(const GivenFlag& flag) {
  values_[flag.name] = flag.values;
  places_[flag.name] = flag.place;
}

void FlagValues::forget(const std::string& flag) {
  values_.erase(flag);
  places_.erase(flag);
  open_.erase(flag);
}

void FlagValues::add_all(const FlagValues& others) {
  for (const auto& [flag, values] : others.values_) {
    forget(flag);
    values_[flag] = values;
    if (const auto place = others.places_.find(flag); place != others.places_.end())
      places_.insert(*place);
  }
}

void FlagValues::leave_open(const std::string& flag, const std::string& value) {
  add(flag, value);
  open_.insert(flag);
}

void FlagValues::throw_with_places(const Error& error) const {
  std::string message = error.what();
  for (const auto& [flag, place] : places_) {
    if (error.code() == ErrorCode::kUsage && names(message, flag)) {
      message += fmt::format(" ({} is from {})", flag, place);
    }
  }
  throw Error(error.code(), message);
}

std::string FlagValues::text(const std::string& flag) const {
  const auto at = values_.find(flag);
  return at == values_.end() ? std::string() : at->second.back();
}

std::vector<std::pair<std::string, std::string>> FlagValues::listed() const {
  std::vector<std::pair<std::string, std::string>> list;
  list.reserve(values_.size());
  for (const auto& [flag, values] : values_) list.emplace_back(flag, values.back());
  return list;
}

std::vector<std::string> FlagValues::all(const std::string& flag) const {
  const auto at = values_.find(flag);
  return at == values_.end() ? std::vector<std::string>() : at->second;
}

std::optional<std::int64_t> FlagValues::whole_number(const std::string& flag, std::int64_t least,
                                                     std::int64_t most) const {
  if (!given(flag)) return std::nullopt;
  const std::optional<std::int64_t> number = number_of<std::int64_t>(text(flag));
  if (!number || *number < least || *number > most) {
    const bool open = most == INT64_MAX && !is_too_large<std::int64_t>(text(flag));
    const std::string range =
        open ? fmt::format("from {} on", least) : fmt::format("from {} to {}", least, most);
    refuse_flag(flag, text(flag), fmt::format("must be a whole number {}", range));
  }
  return number;
}

std::optional<double> FlagValues::positive_number(const std::string& flag, double most) const {
  if (!given(flag)) return std::nullopt;
  const std::optional<double> number = number_of<double>(text(flag));
  if (!number || !(*number > 0 && *number <= most)) {
    refuse_flag(flag, text(flag),
                fmt::format("must be a number above 0, at most 1e{:.0f}", std::log10(most)));
  }
  return number;
}

std::optional<double> FlagValues::number_from_zero(const std::string& flag) const {
  if (!given(flag)) return std::nullopt;
  const std::optional<double> number = number_of<double>(text(flag));
  if (!number || !(*number >= 0 && *number <= 1e9)) {
    refuse_flag(flag, text(flag), "must be a number from 0 to 1e9");
  }
  return number;
}

std::optional<double> FlagValues::number_below_one(const std::string& flag) const {
  if (!given(flag)) return std::nullopt;
  const std::optional<double> number = number_of<double>(text(flag));
  if (!number || !(*number >= 0 && *number < 1)) {
    refuse_flag(flag, text(flag), "must be a number from 0, below 1");
  }
  return number;
}

std::optional<Interval> FlagValues::interval(const std::string& flag) const {
  if (!given(flag)) return std::nullopt;
  const std::string value = text(flag);
  Interval interval;
  if (value.ends_with('s')) {
    interval.seconds = number_of<double>(value.substr(0, value.size() - 1)).value_or(0);
  } else {
    interval.steps = number_of<std::int64_t>(value).value_or(0);
  }
  if (!(interval.seconds >= 0 && interval.seconds <= 1e9) || interval.never()) {
    const bool large = is_too_large<std::int64_t>(value) || interval.seconds > 1e9;
    refuse_flag(flag, value,
                fmt::format("must be steps (100) or seconds (60s), above 0{}",
                            large ? fmt::format(", at most {} steps or 1e9s", INT64_MAX) : ""));
  }
  return interval;
}

std::optional<std::string> FlagValues::choice(const std::string& flag,
                                              const std::vector<std::string>& allowed) const {
  if (!given(flag)) return std::nullopt;
  const std::string value = text(flag);
  if (std::ranges::find(allowed, value) == allowed.end()) {
    refuse_flag(
        flag, value,
        fmt::format("must be one of {}{}", fmt::join(allowed, ", "), did_you_mean(value, allowed)));
  }
  return value;
}

}  // namespace paceline
