// Command lines: the flags that a command has, and the values that were given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "paceline/error.h"
#include "paceline/run_options.h"
#include "run/usage_errors.h"

namespace paceline {

/// A flag, as --help, the man pages and shell completions show it.
struct Flag {
  // "--ps"; a name without dashes is an argument, which must be given unless `optional`
  std::string name;
  /// The value as --help shows it, such as "M". Shells complete "FILE", "PATH" and "DIR" with
  /// paths, and "cpu|sim[:I]" with cpu and sim. If it is empty, the flag is a switch without a
  /// value.
  std::string placeholder;
  std::string help;
  std::string group;     // heading in --help; empty: not shown
  bool repeats = false;  // every value counts; else the last one
  int values = 1;        // how many values it takes at once
  /// The beginnings of values that shells offer, such as "hidden=".
  std::vector<std::string> completions = {};
  bool optional = false;  // an argument without dashes that may be left out
};

/// True for a flag that one part of the program sets for another. Users do not type it.
bool is_internal(const std::string& flag);

/// A flag that was given elsewhere than on the command line.
struct GivenFlag {
  std::string name;                 // "--steps"
  std::vector<std::string> values;  // a switch has one, empty
  std::string place;                // "job.toml, line 3, column 1": for errors
};

/// The given values, as text. The functions that convert them throw kUsage that names the flag and
/// the allowed values.
class FlagValues {
 public:
  bool given(const std::string& flag) const { return values_.contains(flag); }
  /// True if the flag was given on the command line, and not in a file or by the environment.
  bool on_command_line(const std::string& flag) const {
    return given(flag) && !places_.contains(flag) && !is_open(flag);
  }
  /// Returns every given flag with its last value; the value of a switch is empty.
  std::vector<std::pair<std::string, std::string>> listed() const;
  /// Returns the last value that was given; empty if there is none.
  std::string text(const std::string& flag) const;
  std::vector<std::string> all(const std::string& flag) const;

  std::optional<std::int64_t> whole_number(const std::string& flag, std::int64_t least,
                                           std::int64_t most) const;
  /// Returns a number that must be above zero, and at most `most`.
  std::optional<double> positive_number(const std::string& flag, double most = 1e9) const;
  /// A number from zero to 1e9.
  std::optional<double> number_from_zero(const std::string& flag) const;
  /// A number from zero, below 1.
  std::optional<double> number_below_one(const std::string& flag) const;
  /// Returns an interval, which must be above zero: "20" is a number of steps, "60s" a time in
  /// seconds.
  std::optional<Interval> interval(const std::string& flag) const;
  std::optional<std::string> choice(const std::string& flag,
                                    const std::vector<std::string>& allowed) const;

  void add(const std::string& flag, const std::string& value) { values_[flag].push_back(value); }
  void add(const GivenFlag& flag);
  /// Removes the flag, as if the user had not given it.
  void forget(const std::string& flag);
  /// Adds the flags of `others`, which replace flags of the same name.
  void add_all(const FlagValues& others);
  /// Gives a missing flag a first value; a prediction may try other values, too.
  void leave_open(const std::string& flag, const std::string& value);
  bool is_open(const std::string& flag) const { return open_.contains(flag); }
  /// Calls `read`. If it throws an Error that names flags, adds to the message where each of them
  /// was given, if not on the command line.
  template <typename Read>
  auto with_places(Read&& read) const {
    try {
      return read();
    } catch (const Error& error) {
      throw_with_places(error);
    }
  }

 private:
  [[noreturn]] void throw_with_places(const Error& error) const;

  std::map<std::string, std::vector<std::string>> values_;
  std::map<std::string, std::string> places_;
  std::set<std::string> open_;
};

struct CommandLine {
  std::string name;      // "paceline train mlp", as --help shows it
  std::string about;     // a few lines
  std::string examples;  // the end of --help
  std::vector<Flag> flags;
  std::vector<std::string> words = {};  // that may follow the name, for completion
};

/// Reads the arguments after the command's name. "--job_name" counts as "--job-name". If --help was
/// given, prints the help and returns nothing. Throws kUsage for an unknown flag (naming the
/// nearest one), for a flag without its value, and for a stray argument.
std::optional<FlagValues> parse(const CommandLine& line, std::vector<std::string> arguments);

/// Checks now that a file can be written, since hours of work may depend on it later. Throws
/// kUsage.
void check_new_file(const std::string& flag, const std::string& path);

}  // namespace paceline
