// The main function of a program that trains, and the program's settings: its hyper-parameters and
// its own flags.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/dashboard.h"
#include "paceline/predictor.h"
#include "paceline/run_options.h"

namespace paceline {

/// The number of batches that one global step uses: the towers of a worker, times
/// TrainOptions::accumulate, times the number of contributions in a round. Strategies without
/// rounds count one contribution.
std::int64_t batches_of_step(const Cluster& cluster);

/// False for a simulated device that computes no values and only takes time.
bool computes(const DeviceChoice& device);

/// The value of a setting: a whole number, a real number, a bool (on or off), or a text.
using SettingValue = std::variant<std::int64_t, double, bool, std::string>;
/// The types that a setting can have.
template <typename T>
concept SettingType = std::same_as<T, std::int64_t> || std::same_as<T, double> ||
    std::same_as<T, bool> || std::same_as<T, std::string>;

/// A value that `--set name=value` changes: `const Setting<double> kRate = {.name = "rate", …}`. A
/// program lists its settings in ProgramOptions::settings, and reads the value of a setting by the
/// setting itself: `settings[kRate]` is a double.
template <typename T>
requires(SettingType<T> || std::same_as<T, SettingValue>) struct Setting {
  std::string name;          // "learning_rate": small letters, digits and _
  T value;                   // the default
  std::string help = {};     // one line for --help
  double least = -kNoLimit;  // the smallest number that is allowed
  double most = kNoLimit;    // the largest number that is allowed
  /// The texts that are allowed. An empty list allows every text.
  std::vector<std::string> choices = {};
  /// True when the setting is also a flag: --learning-rate X. The flag of a setting of type bool
  /// takes no value and turns the setting on.
  bool flag = false;
  /// The flag's value as --help shows it. Shells complete "FILE" as files and "DIR" as folders. If
  /// the placeholder is empty, --help shows one by type.
  std::string placeholder = {};
  /// The default as --help shows it, for a default that depends on another setting. If the text is
  /// empty, --help shows `value`.
  std::string default_text = {};

  /// The value of `most` (and, negated, of `least`) that allows every number.
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  /// Converts a setting so that it can be in a list of settings of different types.
  operator Setting<SettingValue>() const requires SettingType<T> {
    return {name, value, help, least, most, choices, flag, placeholder, default_text};
  }
};
/// A setting in a list of settings of different types. The type of `value` is the type of the
/// setting.
using AnySetting = Setting<SettingValue>;

/// --batch B: the number of examples in a step of one worker, at least 1.
Setting<std::int64_t> batch_setting(std::int64_t value);
/// --epochs N: the number of passes over the data, at least 1. The program must end its training
/// after these passes. The flag cannot be given together with --steps or --seconds.
Setting<std::int64_t> epochs_setting(std::int64_t value);
/// --data PATH: where the data is.
Setting<std::string> data_setting(std::string value);

/// The values of a program's settings: the values that the user gave, and defaults for the others.
class Settings {
 public:
  /// No settings.
  Settings() = default;
  /// Every setting has its default. Throws kInvalidArgument when a name is wrong or used twice, or
  /// when a default is not allowed.
  explicit Settings(std::vector<AnySetting> declared);

  /// Changes a value, as --set name=value does or, with `by_flag`, as the setting's own flag does.
  /// Throws kUsage, naming what the user typed and what is allowed.
  void set(const std::string& name, const std::string& text, bool by_flag = false);

  /// The value of the declared setting with this name. Throws kInvalidArgument when there is none,
  /// or when it has another type.
  template <SettingType T>
  const T& operator[](const Setting<T>& setting) const;
  /// True when the user gave the value, false when it is the default. Throws as operator[].
  template <SettingType T>
  bool given(const Setting<T>& setting) const;
  /// The values that the user gave, by name, as --set takes them.
  std::map<std::string, std::string> all_given() const;
  /// All settings, as the program declared them.
  const std::vector<AnySetting>& declared() const { return declared_; }
  /// The names and values of all settings as --set takes them, in the order of their declaration.
  std::vector<std::pair<std::string, std::string>> listed() const;

 private:
  struct Value {
    SettingValue value;
    bool given = false;
  };
  /// The value of the setting of this name, whose type is that of `type`. Throws kInvalidArgument.
  const Value& find(const std::string& name, const SettingValue& type) const;

  std::vector<AnySetting> declared_;
  std::vector<Value> values_;
};

template <SettingType T>
const T& Settings::operator[](const Setting<T>& setting) const {
  return std::get<T>(find(setting.name, setting.value).value);
}

template <SettingType T>
bool Settings::given(const Setting<T>& setting) const {
  return find(setting.name, setting.value).given;
}

/// The main function of a program that trains. run_program reads the flags of the cluster and of
/// the run from `argv` (--help lists them), from a --config file and from $TF_CONFIG. Depending on
/// the flags, run_program then launches the tasks on this machine, serves as a ps, or calls `work`
/// as the only process or as a worker. Prints errors, and returns the exit status: 0 done, 1
/// failed, 2 wrong usage, 130 interrupted.
int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work);

/// The observers that run_program adds to a run that trains (RunOptions::observers), for a program
/// with its own main function. The observers serve a page at the address in `dashboard`, if there
/// is one. They also print what speed the chief expects of the job, what its machine could do, and
/// what held the run back.
std::vector<MakeObserver> program_observers(const DashboardOptions& dashboard = {});

/// The result of one pass over the examples for evaluation.
struct Evaluation {
  double loss = 0;               // the mean over the examples
  double precision = 0;          // the share of right answers
  std::int64_t global_step = 0;  // the step whose values were evaluated
};

/// A value in a result of an inference: a whole number, a real number or a text.
using ResultValue = std::variant<std::int64_t, double, std::string>;
/// One result of an inference: the names and values of its columns. All results of an inference
/// have the same columns.
using InferenceRow = std::vector<std::pair<std::string, ResultValue>>;

/// The request of an inference: `PROGRAM infer --out RUN --data NEW`.
struct InferenceRequest {
  /// The checkpoint that --out names: its path, for a Predictor, and its facts.
  SavedModel saved;
  std::string data;      // --data: the path of the new data
  std::int64_t top = 1;  // --top: the number of most probable answers to give, at least 1
  std::function<void(const InferenceRow&)> give;  // prints the next result
};

/// The description and the settings of a program.
struct ProgramOptions {
  /// The first lines of --help.
  std::string about = "Trains, alone or as a cluster.";
  /// The hyper-parameters and the program's own flags, in the order in which --help lists them.
  std::vector<AnySetting> settings = {};
  /// Evaluates the newest whole checkpoint in RunOptions::out, from a run with these settings. The
  /// function makes a session that resumes from the checkpoint, with a default-constructed Cluster
  /// and the given RunOptions. The task "evaluator" calls the function for each new checkpoint. If
  /// the function is empty, the program has no such task.
  std::function<Evaluation(const RunOptions&, const Settings&)> evaluate = {};
  /// Computes results for new data with a checkpoint of a run that had these settings. The command
  /// `PROGRAM infer` calls the function. If the function is empty, the program has no such command.
  std::function<void(const InferenceRequest&, const Settings&)> infer = {};
};

/// run_program for a program with its own settings. Users give values on the command line or in the
/// --config file; --help lists the settings, shells complete them (--completion), and the report
/// has their values. `work` gets the values. A value that is not allowed is refused before any task
/// starts.
int run_program(
    int argc, char** argv, const ProgramOptions& options,
    const std::function<void(const Cluster&, const RunOptions&, const Settings&)>& work);

/// Makes this process a task of a job, for a program that cannot call run_program in its main
/// function, such as a script in another language. A ProgramTask does on a thread of its own what
/// run_program does before and after it calls `work`. A process has at most one ProgramTask. The
/// task heeds SIGINT, SIGTERM and SIGHUP only if all other threads block these signals; a program
/// with its own signal handlers sets RunOptions::end_asked instead.
class ProgramTask {
 public:
  /// `arguments` are the name of the program and its flags; more flags come from the --config file
  /// and from the launcher that started the process, as for run_program. In a process that is a
  /// parameter server or an evaluator, the constructor serves until the job ends; with --help it
  /// prints the help. Throws the errors that run_program would print, such as kUsage.
  explicit ProgramTask(const std::vector<std::string>& arguments,
                       const ProgramOptions& options = {});
  /// Calls end(), unless the program has called it.
  ~ProgramTask();
  ProgramTask(const ProgramTask&) = delete;
  ProgramTask& operator=(const ProgramTask&) = delete;

  /// The exit status of a process that has nothing to train, or whose training has ended. Empty
  /// while the process trains, with cluster(), run() and settings().
  std::optional<int> status() const;
  /// The job of the training. Valid while status() is empty.
  const Cluster& cluster() const;
  /// The options of the run. Valid while status() is empty; sessions may refer to them until end().
  const RunOptions& run() const;
  /// The program's settings. Valid while status() is empty.
  const Settings& settings() const;
  /// Says that the training has ended, with `error` if it failed. The sessions of the training must
  /// have been destroyed. Writes what run_program writes, and prints no exception of the program.
  /// If `error` says that a parameter server was lost with its values (kAborted), status() stays
  /// empty, and the program must train again with run(), which then resumes from the newest
  /// checkpoint.
  void end(std::exception_ptr error = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
