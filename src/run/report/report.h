// Reports, as `--report FILE` writes them (docs/report.md): the report of one task, and the merged
// report of all tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/data.h"
#include "run/report/circumstances.h"
#include "run/report/loss_window.h"
#include "trace/use_meter.h"

namespace paceline {

/// The member "use" of a task's report (docs/report.md). A number that was not measured is empty.
struct TaskUse {
  std::optional<double> cores;  // cores that the task kept busy, on average
  /// Of a worker: the share of its timed steps in which kernels ran.
  std::optional<double> device_busy;
  std::optional<double> sent, received;           // over links, bytes/s
  std::optional<double> disk_read, disk_written;  // bytes/s
  std::optional<double> peak_memory;              // bytes
  double seconds = 0;      // the time over which the use was measured; 0: it was not
  Pressure pressure = {};  // what kept the task from working

  bool operator==(const TaskUse&) const = default;
  /// Returns such words as "1.93 cores, device busy 98%, network 3.4 MB/s in 1.2 out, …".
  std::string text() const;
};

/// `sent` and `received` are the bytes of frames in the time that `use` covers. The result is empty
/// if `use` is.
TaskUse task_use(const std::optional<MachineUse>& use, std::int64_t sent, std::int64_t received);

/// What a report says about a worker's link to a ps.
struct LinkReport {
  std::string to;    // "ps:0"
  std::string kind;  // "shm", "tcp"
  std::optional<double> round_trip_us;
  std::optional<double> step_sent, step_received;  // bytes of frames per step
  std::optional<double> sent, received;            // bytes of frames per second
  std::optional<double> most;  // the bytes per second that the network carries in each direction
  bool encrypted = false;

  bool operator==(const LinkReport&) const = default;
};

/// The kernels of one op, over the steps in which they were timed.
struct KernelReport {
  std::string op;
  double per_step = 0;  // kernels of this op that ran in a step
  double ms = 0;        // the time that they took in a step
  double share = 0;     // their share of the time of all kernels

  bool operator==(const KernelReport&) const = default;
};

/// The values that a ps keeps; slots are not counted.
struct KeptValues {
  double bytes = 0;
  std::string largest;       // the variable that the largest kept piece belongs to
  double largest_bytes = 0;  // of that piece

  bool operator==(const KeptValues&) const = default;
};

/// One entry of "tasks". A number that was not measured is empty here, and null in the file: a
/// worker that made fewer than 11 steps has no timed steps.
struct TaskReport {
  std::string task;  // "worker:0"
  // Of a worker: its own steps, untimed ones included; of a ps: the contributions that it applied.
  std::int64_t steps = 0;
  /// The time of the timed steps; of a ps, from the first contribution to the last.
  std::optional<double> seconds;
  std::optional<double> steps_per_s, examples_per_s;
  std::string unit;  // what examples_per_s counts; a ps has none
  std::optional<double> step_ms_p50, step_ms_p99, step_ms_max;
  /// The fractions of the time that each activity took, in the order of the file. They sum to 1.
  std::vector<std::pair<std::string, double>> share;
  std::optional<double> hidden_ms;  // per step: the time of transfers while kernels computed
  /// The time per step for which copies to and from a device's own memory kept the device busy.
  /// Empty for a device that cannot tell.
  std::optional<double> copies_ms;
  /// The time per step for which the host computed ops that the device has no kernels for.
  std::optional<double> host_ops_ms;
  /// The kernels that a step launches on a device whose kernels are launched.
  std::optional<double> launches;
  std::optional<double> step_sent, step_received;  // of a worker: bytes over links per step
  /// The staleness of a worker's contributions: how many updates of others the ps made between the
  /// worker's read of the values and its own update.
  std::optional<double> staleness_mean, staleness_p95;
  /// The number of the worker's contributions that were dropped because they arrived after their
  /// round had closed.
  std::optional<std::int64_t> dropped;
  /// The number of the worker's contributions that were left out because they had NaN or infinity.
  std::optional<std::int64_t> skipped;
  TaskUse use = {};                   // its use of its machine
  std::vector<LinkReport> links;      // of a worker, by ps
  std::vector<KernelReport> kernels;  // of a worker: the ops that took the most time
  std::optional<InputReport> input;   // of a worker whose input is a pipeline
  std::optional<KeptValues> kept;     // of a ps

  bool is_ps() const { return task.starts_with("ps:"); }
  bool is_worker() const { return task.starts_with("worker:"); }

  bool operator==(const TaskReport&) const = default;
};

/// Numbers that a model adds, such as "perplexity" with "train", "valid" and "test". The section
/// "fetch/SHAPE" is written as the entry {"shape": SHAPE, …} of the list "fetch".
struct ReportSection {
  std::string name;
  std::vector<std::pair<std::string, std::optional<double>>> values;

  bool operator==(const ReportSection&) const = default;
};

/// The speed that was predicted before the first step (docs/predictions.md).
struct ExpectedSpeed {
  double steps_per_s = 0;    // of all workers
  double low = 0, high = 0;  // 80 of 100 runs are between them
  std::string limit;         // what limits the speed, in words
  // The name of that limit (LimitName): "link", "rules"; empty in reports of versions that did not
  // write it.
  std::string limited_by = {};
  std::string way = {};  // the flags that ask for the run's own way; empty: not known
  /// Other ways to distribute the run over the same workers: their flags and expected speeds.
  std::vector<std::pair<std::string, double>> other_ways = {};
  /// The speeds of the machine that the prediction assumed, by the names that a file of hosts uses
  /// (predict/hosts_file.h).
  std::vector<std::pair<std::string, double>> machine = {};
  // The workers that make these steps together; 0 in reports of versions that did not write their
  // number.
  int workers = 0;

  bool operator==(const ExpectedSpeed&) const = default;
};

/// The whole file. In a task's own report, `tasks` has one entry.
struct Report {
  std::string model;
  Circumstances circumstances;        // empty: not known, and not written
  std::string strategy;               // Cluster::strategy
  std::int64_t accumulate = 1;        // TrainOptions::accumulate
  std::int64_t towers = 1;            // Cluster::towers
  std::string precision = "float32";  // name of TrainOptions::precision
  std::string tls = {};               // says in words which links were encrypted; empty: none
  std::optional<int> cores;           // of worker 0's machine
  std::vector<std::pair<std::string, std::string>> flags;  // ProgramRun::flags of worker 0
  std::vector<TaskReport> tasks;
  std::optional<double> first_loss, last_loss;  // of worker 0
  /// The losses of worker 0's first and last steps; empty for a run of few steps, and in reports of
  /// earlier versions.
  std::optional<LossWindow> loss_begin, loss_end;
  std::optional<std::int64_t> global_step;  // the last one that a worker saw
  std::vector<ReportSection> sections;
  std::optional<ExpectedSpeed> expected;
  std::string error;  // empty: the run went well

  /// Adds or replaces one value of a section.
  void set(const std::string& section, const std::string& key, std::optional<double> value);
  /// Returns the value; nothing if the section or the key does not exist, or if the value was not
  /// measured.
  std::optional<double> value(std::string_view section, std::string_view key) const;
  /// Returns the flag that shows that other commands started some tasks of this run, perhaps on
  /// other machines; empty if one command started all of them.
  std::string_view flag_of_other_commands() const;
  /// Returns the sum of the steps of all tasks; 0 if the run had nothing to do.
  std::int64_t steps() const;
  /// Returns the sum of the workers' speeds, over the workers that made a step; empty unless each
  /// of these speeds is known.
  std::optional<double> steps_per_s() const;
  /// Returns the sum of their examples per second, by the same rules.
  std::optional<double> examples_per_s() const;
  /// Returns the JSON text, with all digits that are needed to read the same numbers back.
  std::string to_json() const;
  /// Reads the text of a report. Throws kDataLoss.
  static Report from_json(const std::string& text);

  bool operator==(const Report&) const = default;
};

/// Merges the reports of all tasks into one: workers by index, then ps tasks by index. Loss and
/// sections are taken from the first worker that has them. Only perplexity/valid is averaged over
/// the workers' parts of the data, which have equal sizes: by the geometric mean. The first error
/// that is not empty is kept.
Report merge(std::span<const Report> reports);

/// Writes the report, whole or not at all. Throws kUnavailable, naming the file.
void write_report(const std::string& path, const Report& report);
/// Returns the path of the report in a run's folder (--out).
std::string report_in(const std::string& folder);
/// Reads the report at the path `run`, or in the folder `run` of a run. Throws kNotFound or
/// kDataLoss.
Report read_report(const std::string& run);

}  // namespace paceline
