#include "cli/flags/settings_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/flags/flag_checks.h"
#include "cli/flags/setting_text.h"

namespace paceline {

const char* const kProgramFlags = "Program";

namespace {

std::string placeholder_of(const AnySetting& setting) {
  if (!setting.placeholder.empty() || std::holds_alternative<bool>(setting.value)) {
    return setting.placeholder;
  }
  if (std::holds_alternative<std::int64_t>(setting.value)) return "N";
  if (std::holds_alternative<double>(setting.value)) return "X";
  return setting.choices.empty() ? "TEXT" : fmt::format("{}", fmt::join(setting.choices, "|"));
}

std::string default_of(const AnySetting& setting) {
  return setting.default_text.empty() ? setting_text(setting.value) : setting.default_text;
}

std::string help_of(const AnySetting& setting) {
  const bool is_switch = setting.flag && std::holds_alternative<bool>(setting.value);
  const std::string range = range_text(setting), usual = default_of(setting);
  if (is_switch || (range.empty() && usual.empty())) return setting.help;
  if (usual.empty()) return fmt::format("{} ({})", setting.help, range);
  return fmt::format("{} (default {}{}{})", setting.help, usual, range.empty() ? "" : "; ", range);
}

bool may_stand_for(const AnySetting& setting) {
  return setting.name == "steps" || setting.name == "seconds";
}

std::vector<std::string> completions_of(const std::vector<AnySetting>& settings) {
  std::vector<std::string> words;
  words.reserve(settings.size());
  for (const AnySetting& setting : settings) words.push_back(setting.name + "=");
  return words;
}

// Returns true if --set decides. If a setting is given both by --set and by its own flag, the
// command line overrides the file.
bool set_counts(const FlagValues& values, const AnySetting& setting) {
  const std::string flag = flag_of(setting);
  if (!setting.flag || !values.given(flag)) return true;
  if (values.on_command_line("--set") != values.on_command_line(flag)) {
    return values.on_command_line("--set");
  }
  refuse_flags(
      fmt::format("{} and --set {} cannot both be given: they are the same", flag, setting.name));
}

void read_flag_of(const FlagValues& values, const AnySetting& setting, Settings& settings) {
  const std::string flag = flag_of(setting);
  if (!setting.flag || !values.given(flag)) return;
  const bool is_switch = std::holds_alternative<bool>(setting.value);
  settings.set(setting.name, is_switch ? "1" : values.text(flag), true);
}

void read_set(const FlagValues& values, const std::string& text, Settings& settings) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    refuse_flag("--set", text, "must be name=value");
  }
  const std::string name = text.substr(0, equals);
  const auto setting = std::ranges::find(settings.declared(), name, &AnySetting::name);
  if (setting != settings.declared().end() && !set_counts(values, *setting)) return;
  settings.set(name, text.substr(equals + 1));
}

}  // namespace

std::vector<Flag> own_flags(const std::vector<AnySetting>& settings) {
  std::vector<Flag> flags;
  for (const AnySetting& setting : settings) {
    if (!setting.flag) continue;
    flags.push_back({flag_of(setting), placeholder_of(setting), help_of(setting), kProgramFlags});
  }
  return flags;
}

CommandLine with_settings(CommandLine line, const std::vector<AnySetting>& settings) {
  if (settings.empty()) return line;
  std::vector<Flag> own = own_flags(settings);
  for (const AnySetting& setting : settings) {
    const auto hidden = std::ranges::find(line.flags, flag_of(setting), &Flag::name);
    if (!setting.flag || hidden == line.flags.end()) continue;
    if (!may_stand_for(setting)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the setting '{}' would hide the flag {} of every program; give it "
                              "another name or no flag",
                              setting.name, hidden->name));
    }
    line.flags.erase(hidden);
  }
  own.push_back({"--set", "NAME=VALUE", "Change a hyper-parameter (listed below)", kProgramFlags,
                 true, 1, completions_of(settings)});
  line.flags.insert(line.flags.begin(), own.begin(), own.end());
  line.examples = settings_text(settings) + "\n" + line.examples;
  return line;
}

std::string settings_text(const std::vector<AnySetting>& settings) {
  std::string text = "Hyper-parameters (--set name=value):\n";
  for (const AnySetting& setting : settings) {
    text += fmt::format("  {:<32}{}\n", setting.name, help_of(setting));
  }
  return settings.empty() ? "" : text;
}

Settings read_settings(const std::vector<AnySetting>& settings, const FlagValues& values) {
  Settings read(settings);
  for (const AnySetting& setting : settings) read_flag_of(values, setting, read);
  for (const std::string& text : values.all("--set")) read_set(values, text, read);
  if (read.all_given().contains("epochs")) {
    for (const char* other : {"--steps", "--seconds"}) {
      check_apart(values, "--epochs", other, "each says when the run ends");
    }
  }
  return read;
}

std::vector<std::pair<std::string, std::string>> flags_and_settings(const FlagValues& values,
                                                                    const Settings& settings) {
  std::vector<std::pair<std::string, std::string>> list = values.listed();
  std::erase_if(list, [&](const auto& flag) {
    return flag.first == "--set" || is_internal(flag.first) ||
           std::ranges::any_of(settings.declared(), [&](const AnySetting& setting) {
             return setting.flag && flag_of(setting) == flag.first;
           });
  });
  const auto all = settings.listed();
  list.insert(list.end(), all.begin(), all.end());
  return list;
}

}  // namespace paceline
