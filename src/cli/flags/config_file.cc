#include "cli/flags/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "cli/flags/path_flags.h"
#include "cli/flags/unknown_flag.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using Kind = ConfigValue::Kind;

// A file of flags is short, so a larger file cannot be one.
constexpr std::uintmax_t kLargestFile = 1 << 20;

/// Reads the members of one file.
class FlagsOfFile {
 public:
  FlagsOfFile(const CommandLine& line, const std::string& source) : line_(line), source_(source) {}

  GivenFlag read(const ConfigValue& member) const {
    const Flag& flag = find(member);
    GivenFlag given{flag.name, {}, place_of(source_, member.line, member.column)};
    if (flag.placeholder.empty()) {
      given.values = switched(member);
    } else if (flag.name == "--cluster" && member.kind == Kind::kTable) {
      given.values = {spec_text(member)};
    } else if (flag.repeats) {
      given.values = repeated(member);
    } else {
      given.values = {text_of(member)};
    }
    if (names_path(flag.placeholder)) {
      for (std::string& value : given.values) value = path_of(member, flag, value);
    }
    return given;
  }

 private:
  [[noreturn]] void refuse(const ConfigValue& value, const std::string& why) const {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: {}", place_of(source_, value.line, value.column), why));
  }

  const Flag& find(const ConfigValue& member) const {
    std::string name = "--" + member.key;
    std::ranges::replace(name, '_', '-');
    for (const Flag& flag : line_.flags) {
      if (flag.name == "--config" || is_internal(flag.name)) continue;
      if (flag.name == name) return flag;
    }
    refuse(member, fmt::format("unknown key '{}'{} (keys are the flags of {}, see --help)",
                               member.key, hint_of(name), line_.name));
  }

  // Keys have no dashes.
  std::string hint_of(const std::string& flag) const {
    std::string hint = unknown_flag_hint(line_, flag);
    for (std::size_t at = 0; (at = hint.find("--", at)) != std::string::npos;) hint.erase(at, 2);
    return hint;
  }

  std::string path_of(const ConfigValue& member, const Flag& flag, const std::string& value) const {
    try {
      return expanded_path(flag.name, value);
    } catch (const Error& error) {
      refuse(member, error.what());
    }
  }

  std::vector<std::string> switched(const ConfigValue& member) const {
    if (member.kind != Kind::kSwitch) {
      refuse(member, fmt::format("'{}' must be true or false", member.key));
    }
    if (member.text == "false") return {};
    return {""};
  }

  std::string scalar(const ConfigValue& value, const std::string& key) const {
    if (value.kind != Kind::kText && value.kind != Kind::kNumber) {
      refuse(value, fmt::format("'{}' must be a string or a number", key));
    }
    return value.text;
  }

  std::string text_of(const ConfigValue& member) const {
    if (member.kind != Kind::kList) return scalar(member, member.key);
    std::vector<std::string> parts;
    for (const ConfigValue& item : member.items) parts.push_back(scalar(item, member.key));
    return fmt::format("{}", fmt::join(parts, ","));
  }

  std::vector<std::string> repeated(const ConfigValue& member) const {
    std::vector<std::string> values;
    if (member.kind == Kind::kTable) {
      for (const ConfigValue& item : member.items) {
        const bool is_switch = item.kind == Kind::kSwitch;
        values.push_back(item.key + "=" + (is_switch ? item.text : scalar(item, item.key)));
      }
    } else if (member.kind == Kind::kList) {
      for (const ConfigValue& item : member.items) values.push_back(scalar(item, member.key));
    } else {
      values.push_back(scalar(member, member.key));
    }
    return values;
  }

  std::string spec_text(const ConfigValue& member) const {
    std::vector<std::string> jobs;
    for (const ConfigValue& job : member.items) jobs.push_back(job.key + "=" + text_of(job));
    return fmt::format("{}", fmt::join(jobs, ";"));
  }

  const CommandLine& line_;
  const std::string& source_;
};

std::string text_of_file(const std::string& path) {
  const auto cannot = [&](const std::string& why) {
    refuse_flag("--config", path, "cannot be read: " + why);
  };
  std::error_code unseen;
  if (std::filesystem::is_directory(path, unseen)) cannot("it is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) cannot(std::strerror(errno));
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) cannot(std::strerror(errno));
  if (text.size() > kLargestFile) cannot("it is larger than 1 MiB");
  return text;
}

}  // namespace

std::vector<GivenFlag> flags_of(const ConfigValue& root, const CommandLine& line,
                                const std::string& source) {
  if (root.kind != Kind::kTable) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: flags are the members of one table: {{…}}",
                                               place_of(source, root.line, root.column)));
  }
  const FlagsOfFile reader(line, source);
  std::vector<GivenFlag> given;
  for (const ConfigValue& member : root.items) given.push_back(reader.read(member));
  std::ranges::stable_sort(given, {}, &GivenFlag::name);
  const auto twice = std::ranges::adjacent_find(given, {}, &GivenFlag::name);
  if (twice != given.end()) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: {} is given twice, here and at {}",
                                               std::next(twice)->place, twice->name, twice->place));
  }
  std::erase_if(given, [](const GivenFlag& flag) { return flag.values.empty(); });
  return given;
}

std::vector<GivenFlag> read_config_file(const std::string& path, const CommandLine& line) {
  if (path.ends_with(".json")) return flags_of(parse_json(text_of_file(path), path), line, path);
  if (path.ends_with(".toml")) return flags_of(parse_toml(text_of_file(path), path), line, path);
  refuse_flag("--config", path, "its name must end in .json or .toml");
}

}  // namespace paceline
