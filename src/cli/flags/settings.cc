#include "paceline/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "cli/flags/command_line.h"
#include "cli/flags/number_text.h"
#include "cli/flags/path_flags.h"
#include "cli/flags/setting_text.h"
#include "paceline/error.h"

namespace paceline {

namespace {

bool in_range(const AnySetting& setting, double number) {
  return std::isfinite(number) && number >= setting.least && number <= setting.most;
}

bool is_allowed(const AnySetting& setting, const SettingValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return in_range(setting, double(*whole));
  }
  if (const auto* number = std::get_if<double>(&value)) return in_range(setting, *number);
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr || setting.choices.empty() ||
         std::ranges::find(setting.choices, *text) != setting.choices.end();
}

std::optional<SettingValue> parsed(const AnySetting& setting, const std::string& text) {
  if (std::holds_alternative<std::int64_t>(setting.value)) {
    if (const auto whole = number_of<std::int64_t>(text)) return *whole;
    return std::nullopt;
  }
  if (std::holds_alternative<double>(setting.value)) {
    if (const auto number = number_of<double>(text)) return *number;
    return std::nullopt;
  }
  if (std::holds_alternative<std::string>(setting.value)) return text;
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return std::nullopt;
}

bool is_good_name(const std::string& name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
}

[[noreturn]] void refuse_declaration(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("the setting '{}' {}", name, why));
}

void check_declaration(const AnySetting& setting) {
  if (!is_good_name(setting.name)) {
    refuse_declaration(setting.name, "needs a name of small letters, digits and _");
  }
  if (!is_allowed(setting, setting.value)) {
    refuse_declaration(setting.name,
                       fmt::format("has the default {}, which {}", setting_text(setting.value),
                                   allowed_text(setting)));
  }
  if (const bool* const on = std::get_if<bool>(&setting.value); on && *on && setting.flag) {
    refuse_declaration(setting.name, "is on by default, so that its flag would change nothing");
  }
}

std::string type_of(const SettingValue& value) {
  constexpr const char* kTypes[] = {"a whole number", "a number", "on or off", "a text"};
  return kTypes[value.index()];
}

std::vector<std::string> names_of(const std::vector<AnySetting>& settings) {
  std::vector<std::string> names;
  names.reserve(settings.size());
  for (const AnySetting& setting : settings) names.push_back(setting.name);
  return names;
}

}  // namespace

std::string setting_text(const SettingValue& value) {
  if (const bool* const on = std::get_if<bool>(&value)) return *on ? "1" : "0";
  return std::visit([](const auto& any) { return fmt::format("{}", any); }, value);
}

std::string range_text(const AnySetting& setting) {
  const bool has_least = std::isfinite(setting.least), has_most = std::isfinite(setting.most);
  if (has_least && has_most) return fmt::format("from {} to {}", setting.least, setting.most);
  if (has_least) return fmt::format("from {} on", setting.least);
  return has_most ? fmt::format("of at most {}", setting.most) : "";
}

std::string allowed_text(const AnySetting& setting) {
  if (std::holds_alternative<bool>(setting.value)) return "must be 0 or 1";
  if (std::holds_alternative<std::string>(setting.value)) {
    return fmt::format("must be one of {}", fmt::join(setting.choices, ", "));
  }
  const std::string range = range_text(setting);
  return fmt::format("must be {}{}{}", type_of(setting.value), range.empty() ? "" : " ", range);
}

std::string flag_of(const AnySetting& setting) {
  std::string flag = "--" + setting.name;
  std::ranges::replace(flag, '_', '-');
  return flag;
}

Setting<std::int64_t> batch_setting(std::int64_t value) {
  return {.name = "batch",
          .value = value,
          .help = "The number of examples in a step of one worker",
          .least = 1,
          .flag = true,
          .placeholder = "B"};
}

Setting<std::int64_t> epochs_setting(std::int64_t value) {
  return {.name = "epochs",
          .value = value,
          .help = "End after so many passes of each worker over its part of the data",
          .least = 1,
          .flag = true,
          .placeholder = "N"};
}

Setting<std::string> data_setting(std::string value) {
  return {.name = "data",
          .value = std::move(value),
          .help = "Where the data is",
          .flag = true,
          .placeholder = "PATH"};
}

namespace {

// Says what is allowed. If the text is a number that its type cannot hold, also says where the
// type's range ends.
std::string why_refused(const AnySetting& setting, const std::string& text) {
  const bool open = std::holds_alternative<std::int64_t>(setting.value) &&
                    !std::isfinite(setting.most) && is_too_large<std::int64_t>(text);
  return allowed_text(setting) + (open ? fmt::format(", at most {}", INT64_MAX) : "") +
         did_you_mean(text, setting.choices);
}

}  // namespace

Settings::Settings(std::vector<AnySetting> declared) : declared_(std::move(declared)) {
  for (auto setting = declared_.begin(); setting != declared_.end(); ++setting) {
    check_declaration(*setting);
    if (std::find_if(declared_.begin(), setting, [&](const AnySetting& before) {
          return before.name == setting->name;
        }) != setting) {
      refuse_declaration(setting->name, "is declared twice");
    }
    values_.push_back({setting->value});
  }
}

void Settings::set(const std::string& name, const std::string& text, bool by_flag) {
  const auto setting = std::ranges::find(declared_, name, &AnySetting::name);
  if (setting == declared_.end()) {
    const std::vector<std::string> names = names_of(declared_);
    throw Error(ErrorCode::kUsage,
                fmt::format("--set {}: there is no such hyper-parameter{} ({})", name,
                            did_you_mean(name, names), fmt::join(names, ", ")));
  }
  if (names_path(setting->placeholder) && std::holds_alternative<std::string>(setting->value)) {
    const std::string flag = by_flag ? flag_of(*setting) : "--set " + name;
    values_[std::size_t(setting - declared_.begin())] = {expanded_path(flag, text), true};
    return;
  }
  const std::optional<SettingValue> value = parsed(*setting, text);
  if (value && is_allowed(*setting, *value)) {
    values_[std::size_t(setting - declared_.begin())] = {*value, true};
    return;
  }
  const std::string why = why_refused(*setting, text);
  if (by_flag) refuse_flag(flag_of(*setting), text, why);
  throw Error(ErrorCode::kUsage, fmt::format("--set {}={}: {}", name, text, why));
}

const Settings::Value& Settings::find(const std::string& name, const SettingValue& type) const {
  const auto setting = std::ranges::find(declared_, name, &AnySetting::name);
  if (setting == declared_.end()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the setting '{}' is not declared: add it to ProgramOptions::settings", name));
  }
  if (setting->value.index() != type.index()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the setting '{}' is declared as {}, not {}", name,
                            type_of(setting->value), type_of(type)));
  }
  return values_[std::size_t(setting - declared_.begin())];
}

std::map<std::string, std::string> Settings::all_given() const {
  std::map<std::string, std::string> given;
  for (std::size_t i = 0; i < declared_.size(); ++i) {
    if (values_[i].given) given.emplace(declared_[i].name, setting_text(values_[i].value));
  }
  return given;
}

std::vector<std::pair<std::string, std::string>> Settings::listed() const {
  std::vector<std::pair<std::string, std::string>> list;
  list.reserve(declared_.size());
  for (std::size_t i = 0; i < declared_.size(); ++i) {
    list.emplace_back(declared_[i].name, setting_text(values_[i].value));
  }
  return list;
}

}  // namespace paceline
