#include "cli/flags/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

#include "cli/flags/path_flags.h"
#include "cli/flags/unknown_flag.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using Options = std::vector<std::pair<const Flag*, CLI::Option*>>;

// Changes --job_name, as other systems spell flags, to --job-name. A value stays as it is.
void use_dashes(std::string& argument) {
  if (!argument.starts_with("--")) return;
  const auto end = std::ranges::find(argument, '=');
  std::replace(argument.begin(), end, '_', '-');
}

CLI::Option* add(CLI::App& app, const Flag& flag) {
  if (flag.placeholder.empty()) {
    return app.add_flag(flag.name, flag.help)->disable_flag_override()->group(flag.group);
  }
  CLI::Option* option = app.add_option(flag.name, flag.help);
  option->type_name(flag.placeholder)->group(flag.group)->expected(flag.values);
  option->required(!flag.name.starts_with('-') && !flag.optional)
      ->allow_extra_args(flag.repeats && !flag.name.starts_with('-'));
  const bool take_all = flag.repeats || flag.values > 1;
  option->multi_option_policy(take_all ? CLI::MultiOptionPolicy::TakeAll
                                       : CLI::MultiOptionPolicy::TakeLast);
  return option;
}

// CLI11 leaves two blank lines between the groups of flags.
std::string without_double_blank_lines(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

[[noreturn]] void refuse_stray(const CommandLine& line, const std::string& argument) {
  if (!argument.starts_with('-')) {
    throw Error(ErrorCode::kUsage,
                fmt::format("unexpected argument '{}' (see {} --help)", argument, line.name));
  }
  const std::string name = argument.substr(0, argument.find('='));
  throw Error(ErrorCode::kUsage, fmt::format("unknown flag {}{} (see {} --help)", name,
                                             unknown_flag_hint(line, name), line.name));
}

[[noreturn]] void refuse_missing(const CommandLine& line, const Flag& missing) {
  std::string usage = line.name;
  for (const Flag& flag : line.flags) {
    if (!flag.name.starts_with('-')) usage += " " + flag.name;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("{} is missing ({}, {}): {} (see {} --help)", missing.name,
                          missing.placeholder, missing.help, usage, line.name));
}

// Refuses too many or too few values. CLI11 would name the flag without its dashes, or in other
// words.
[[noreturn]] void refuse_values(const CommandLine& line, const Options& options,
                                const CLI::ParseError& error) {
  for (const auto& [flag, option] : options) {
    const std::string text = error.what();
    const std::string bare = flag->name.substr(flag->name.find_first_not_of('-'));
    if (!text.starts_with(flag->name + ":") && !text.starts_with(bare + " ")) continue;
    if (!flag->name.starts_with('-')) refuse_missing(line, *flag);
    const bool value = !flag->placeholder.empty();
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{} {}", flag->name, value ? "needs " + flag->placeholder : "takes no value"));
  }
  throw Error(ErrorCode::kUsage, error.what());
}

// Refuses an empty value, such as "$report" in a shell where that is not set. A title may be empty.
void refuse_empty(const Flag& flag) {
  if (flag.placeholder == "TEXT") return;
  refuse_flag(flag.name, "", fmt::format("must be {}, not empty", flag.placeholder));
}

FlagValues values_of(const Options& options) {
  FlagValues values;
  for (const auto& [flag, option] : options) {
    if (option->count() == 0) continue;
    if (flag->placeholder.empty()) values.add(flag->name, "");
    for (const std::string& value : option->results()) {
      if (flag->placeholder.empty()) continue;
      if (value.empty()) refuse_empty(*flag);
      values.add(flag->name,
                 names_path(flag->placeholder) ? expanded_path(flag->name, value) : value);
    }
  }
  return values;
}

}  // namespace

std::optional<FlagValues> parse(const CommandLine& line, std::vector<std::string> arguments) {
  CLI::App app(line.about, line.name);
  app.footer(line.examples);
  app.get_formatter()->column_width(34);
  app.set_help_flag("-h,--help", "Print this and end");
  Options options;
  for (const Flag& flag : line.flags) options.emplace_back(&flag, add(app, flag));
  for (std::string& argument : arguments) use_dashes(argument);
  std::ranges::reverse(arguments);  // as CLI11 takes them
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::cout << without_double_blank_lines(app.help()) << std::flush;
    return std::nullopt;
  } catch (const CLI::ExtrasError&) {
    refuse_stray(line, app.remaining().front());
  } catch (const CLI::ParseError& error) {
    refuse_values(line, options, error);
  }
  return values_of(options);
}

}  // namespace paceline
