// A command line: which flags there are, and what was given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "paceline/error.h"
#include "paceline/run_options.h"

namespace paceline {

/// What --help, the man pages and the completions of shells say of a flag.
struct Flag {
  std::string name;  // "--ps"; without dashes: an argument that must be given
  /// "M"; "FILE", "PATH" and "DIR" are completed as such, "cpu|sim[:I]" as cpu and sim; empty: a
  /// switch without a value.
  std::string placeholder;
  std::string help;
  std::string group;     // heading in --help; empty: not shown
  bool repeats = false;  // every value counts; else the last one
  int values = 1;        // how many it takes at once
};

/// A flag that was given elsewhere than on the command line.
struct GivenFlag {
  std::string name;                 // "--steps"
  std::vector<std::string> values;  // a switch has one, empty
  std::string place;                // "job.toml, line 3, column 1": for errors
};

/// What was given, as text; the readers refuse what cannot be. All throw kUsage that names the flag
/// and what is allowed.
class FlagValues {
 public:
  bool given(const std::string& flag) const { return values_.contains(flag); }
  /// The value, the last where it was given twice; empty when it was not given.
  std::string text(const std::string& flag) const;
  std::vector<std::string> all(const std::string& flag) const;

  std::optional<std::int64_t> whole_number(const std::string& flag, std::int64_t least,
                                           std::int64_t most) const;
  /// Above zero, at most 1e9.
  std::optional<double> positive_number(const std::string& flag) const;
  /// From zero, at most 1e9.
  std::optional<double> number_from_zero(const std::string& flag) const;
  /// "20": steps, "60s": seconds; above zero.
  std::optional<Interval> interval(const std::string& flag) const;
  std::optional<std::string> choice(const std::string& flag,
                                    const std::vector<std::string>& allowed) const;

  void add(const std::string& flag, const std::string& value) { values_[flag].push_back(value); }
  void add(const GivenFlag& flag);
  /// Calls `read`; what it refuses says where each flag that it names was given, if elsewhere than
  /// on the command line.
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
};

struct CommandLine {
  std::string name;      // "paceline train mlp", as --help shows it
  std::string about;     // a few lines
  std::string examples;  // the end of --help
  std::vector<Flag> flags;
  std::vector<std::string> words = {};  // that may follow the name, for completion
};

/// Reads the arguments after the command's name. "--job_name" is "--job-name". Prints the help and
/// gives nothing when --help was asked for. Throws kUsage on an unknown flag (with the nearest), a
/// flag without its value and a stray argument.
std::optional<FlagValues> parse(const CommandLine& line, std::vector<std::string> arguments);

/// "--threads 0: must be a whole number from 1 to 1024".
[[noreturn]] void refuse_flag(const std::string& flag, const std::string& value,
                              const std::string& why);

/// A file that is to be written can be: found now, not after hours of work. Throws kUsage.
void check_new_file(const std::string& flag, const std::string& path);

}  // namespace paceline
