// The main function of a program that trains, and the program's settings: its hyper-parameters, and
// flags of its own.
#pragma once

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

/// The number of batches whose mean makes one global step: one of each worker in rounds.
std::int64_t batches_of_step(const Cluster& cluster);

/// False for a simulated device that only takes time.
bool computes(const DeviceChoice& device);

/// The value of a setting: a whole number, a number, on or off, or a text.
using SettingValue = std::variant<std::int64_t, double, bool, std::string>;

/// One thing that `--set name=value` changes. The type of the default is the type of the setting.
struct Setting {
  std::string name;          // "learning_rate": small letters, digits and _
  SettingValue value;        // the default
  std::string help = {};     // one line for --help
  double least = -kNoLimit;  // the smallest number that is allowed
  double most = kNoLimit;    // the largest number that is allowed
  /// The texts that are allowed. An empty list allows every text.
  std::vector<std::string> choices = {};
  /// The setting is also a flag: --learning-rate X. If it is on or off, its flag takes no value and
  /// turns it on.
  bool flag = false;
  /// The flag's value as --help shows it. Shells complete "FILE" and "DIR" as such. If it is
  /// empty, it follows from the type.
  std::string placeholder = {};
  /// The default as --help shows it, where it depends on another setting. If it is empty, --help
  /// shows `value`.
  std::string default_text = {};

  /// The value of `most` (and, negated, of `least`) that allows every number.
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
};

/// --batch B: the number of examples in a step of one worker, at least 1.
Setting batch_setting(std::int64_t value);
/// --epochs N: the number of passes over the data, at least 1. The program ends its training after
/// them. The flag excludes --steps and --seconds.
Setting epochs_setting(std::int64_t value);
/// --data PATH: where the data is.
Setting data_setting(std::string value);

/// The settings of a program by name, with the values that the user gave.
class Settings {
 public:
  /// There are none.
  Settings() = default;
  /// Every setting has its default. Throws kInvalidArgument when a name is wrong or used twice, or
  /// when a default is not allowed.
  explicit Settings(std::vector<Setting> declared);

  /// Changes a value, as --set name=value does or, with `by_flag`, as the setting's own flag.
  /// Throws kUsage that names what was typed and what is allowed.
  void set(const std::string& name, const std::string& text, bool by_flag = false);

  /// The value of a setting that is a whole number. This function and the next three throw
  /// kInvalidArgument when no setting has the name or when it is of another type.
  std::int64_t whole(const std::string& name) const;
  /// The value of a setting that is a number, whole or not.
  double number(const std::string& name) const;
  /// True when a setting that is on or off is on.
  bool on(const std::string& name) const;
  /// The value of a setting that is a text.
  const std::string& text(const std::string& name) const;
  /// True when the user gave the value, false when it is the default or no setting has the name.
  bool given(const std::string& name) const;
  /// The values that the user gave, by name, as --set takes them.
  std::map<std::string, std::string> all_given() const;
  /// All settings as they were declared.
  const std::vector<Setting>& declared() const { return declared_; }
  /// Names and values in the order of their declaration, as --set takes them.
  std::vector<std::pair<std::string, std::string>> listed() const;

 private:
  struct Value {
    SettingValue value;
    bool given = false;
  };
  const Value& find(const std::string& name) const;

  std::vector<Setting> declared_;
  std::vector<Value> values_;
};

/// The main function of a program that trains. It reads the flags of the cluster and of the run
/// from `argv` (--help lists them), from a --config file and from $TF_CONFIG. Then it launches the
/// tasks on this machine, serves as a ps, or calls `work` as the only process or as a worker,
/// whichever the flags say. It prints errors and returns the exit status: 0 done, 1 failed,
/// 2 wrong usage, 130 interrupted.
int run_program(int argc, char** argv,
                const std::function<void(const Cluster&, const RunOptions&)>& work);

/// The observers that run_program adds to a run that trains (RunOptions::observers), for a program
/// with a main function of its own: the page at `dashboard`, if that names an address, what the
/// chief expects of the job, what its machine could do, and what held the run back.
std::vector<MakeObserver> program_observers(const DashboardOptions& dashboard = {});

/// The result of one pass over the examples for evaluation.
struct Evaluation {
  double loss = 0;               // the mean
  double precision = 0;          // the share of right answers
  std::int64_t global_step = 0;  // of the values that were evaluated
};

/// A value of an inference's result: a whole number, a number or a text.
using ResultValue = std::variant<std::int64_t, double, std::string>;
/// One result: the values of its columns by their names. All results of an inference have the same
/// columns.
using InferenceRow = std::vector<std::pair<std::string, ResultValue>>;

/// What an inference is asked for: `PROGRAM infer --out RUN --data NEW`.
struct InferenceRequest {
  SavedModel saved;      // --out: the checkpoint, whose path a Predictor takes, and what it tells
  std::string data;      // --data: the path of the new data
  std::int64_t top = 1;  // --top: so many of the most probable answers, at least 1
  std::function<void(const InferenceRow&)> give;  // prints the next result
};

/// The description and the settings of a program.
struct ProgramOptions {
  /// The first lines of --help.
  std::string about = "Trains, alone or as a cluster.";
  /// The hyper-parameters and the program's own flags, in the order in which --help lists them.
  std::vector<Setting> settings = {};
  /// Evaluates the newest whole checkpoint in RunOptions::out, of a run with these settings: a
  /// session of a `Cluster` of its own, with --resume, reads it. The task "evaluator" calls this
  /// for each new checkpoint. If it is empty, the program has no such task.
  std::function<Evaluation(const RunOptions&, const Settings&)> evaluate = {};
  /// Computes results of new data with a checkpoint of a run, whose settings it gets. The command
  /// `PROGRAM infer` calls it. If it is empty, the program has no such command.
  std::function<void(const InferenceRequest&, const Settings&)> infer = {};
};

/// The same, for a program with settings of its own: they are given on the command line or in the
/// --config file, listed by --help, completed by shells (--completion) and written to the report.
/// `work` gets their values. A value that is not allowed is refused before any task starts.
int run_program(
    int argc, char** argv, const ProgramOptions& options,
    const std::function<void(const Cluster&, const RunOptions&, const Settings&)>& work);

/// This process as a task of a job, for a program whose main function is not run_program's, such as
/// a script in another language. What run_program does before and after it calls `work` is done on
/// a thread of its own here. One per process, which heeds SIGINT, SIGTERM and SIGHUP only where all
/// other threads block them; a program with handlers of its own asks by RunOptions::end_asked.
class ProgramTask {
 public:
  /// `arguments` are the name of the program and its flags; more come from the --config file and
  /// from what has started the process, as for run_program. A process that is a parameter server or
  /// evaluates serves until the job ends, and one whose flags ask for --help prints that. Throws
  /// what run_program would print, such as kUsage.
  explicit ProgramTask(const std::vector<std::string>& arguments,
                       const ProgramOptions& options = {});
  /// The same as end(), unless that was called.
  ~ProgramTask();
  ProgramTask(const ProgramTask&) = delete;
  ProgramTask& operator=(const ProgramTask&) = delete;

  /// The exit status of a process that has nothing to train, or whose training has ended; empty:
  /// it trains, with cluster(), run() and settings().
  std::optional<int> status() const;
  /// What the training is told: valid while status() is empty.
  const Cluster& cluster() const;
  /// The same; sessions may borrow it until end().
  const RunOptions& run() const;
  /// The same.
  const Settings& settings() const;
  /// Says that the training has ended, with this exception where it failed, once its sessions are
  /// gone. Writes what run_program writes, and prints no exception of the program. When a parameter
  /// server was lost with its values, status() stays empty, and the training begins again with
  /// run(), which goes on from the newest checkpoint.
  void end(std::exception_ptr error = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
