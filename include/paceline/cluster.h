// Clusters: the tasks of a job, their addresses, and the task that this process runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "paceline/strategy.h"
#include "paceline/tensor.h"

namespace paceline {

struct LinkSecurity;

/// The addresses "host:port" of all tasks, by role and index.
struct ClusterSpec {
  std::vector<std::string> ps;       // the parameter servers by task index
  std::vector<std::string> workers;  // the workers by task index; worker 0 is the chief
  /// The addresses of tasks that only evaluate. They are no part of the job: nobody connects to
  /// them, and str() leaves them out.
  std::vector<std::string> evaluators = {};
  bool operator==(const ClusterSpec&) const = default;
  /// Reads a text such as "ps=a:1,b:1;worker=c:1". Throws kUsage on an unknown role and on an
  /// address that is wrong or given twice.
  static ClusterSpec parse(const std::string& text);
  /// The text that parse() reads.
  std::string str() const;
};

/// A task, such as "ps:0" or "worker:2". The task worker:0 is the chief.
struct TaskId {
  /// The role of a task, named as in specs and flags. TensorFlow calls a role a job.
  enum class Role : std::uint8_t {
    kPs,      // "ps": keeps variables
    kWorker,  // "worker": trains
  };
  Role role = Role::kWorker;  // what the task does
  int index = 0;              // from 0, among the tasks of its role
  bool operator==(const TaskId&) const = default;
  /// Reads a text such as "worker:1". Throws kUsage.
  static TaskId parse(const std::string& text);
  /// The text that parse() reads.
  std::string str() const;
};

/// The device that computes in a task; with towers, the first of the devices of the task. The
/// fields whose names begin with sim_ are for "sim" alone.
struct DeviceChoice {
  std::string kind = "cpu";  // "cpu", "cuda" or "sim"
  /// The number of the device among those of its kind. It is −1 in a launcher that gives each
  /// worker the device of the worker's own index.
  int index = 0;
  /// The milliseconds that every step takes. If the number is 0, the time follows from sim_gflops.
  double sim_step_ms = 0;
  /// The speed of the device in GFLOP/s: a step takes the FLOPs of its graph divided by this speed.
  double sim_gflops = 0;
  /// The rate in GB/s of copies between the memory of the host and that of the device. If it is 0,
  /// the device shares the host's memory.
  double sim_copy_gbps = 0;
  /// True: the device also computes the values, on the cores of this machine.
  bool sim_compute = false;
  /// True: the host waits after each kernel of a GPU, so that an error names the op.
  bool cuda_check = false;
  /// True: a GPU multiplies float32 in TF32, whose factors have 10 bits of fraction.
  bool cuda_tf32 = false;
  /// True: a GPU uses only kernels that give the same bits in every run.
  bool cuda_deterministic = false;
};

/// The links between tasks that TLS 1.3 encrypts and authenticates.
enum class Tls : std::uint8_t {
  kOffHost,  // the links that leave the host
  kAlways,   // all links; tasks on the same host then share no memory
  kNever,    // no link: anyone who reaches a port may join, read and change what is sent
};

/// How a task proves to the others that it belongs to the job: all tasks share one key, or each has
/// a certificate that one authority signed.
struct Security {
  Tls tls = Tls::kOffHost;  // the links that are encrypted
  /// The file of the key. Empty: the file that $PACELINE_KEY_FILE names, or else
  /// ~/.config/paceline/key, if it exists.
  std::string key_file = {};
  /// The PEM file of this task's certificate, followed by the certificates between this one and the
  /// authority's. A task with a certificate needs the next two files, and no key.
  std::string certificate = {};
  std::string certificate_key = {};  // the PEM file of the certificate's private key
  std::string authority = {};        // the PEM file of the authority's certificate
  /// The key and certificates once they are read. run_program reads them before it listens
  /// anywhere, since a key that comes through a pipe can be read only once. Null: the code that
  /// makes a link reads them.
  std::shared_ptr<const LinkSecurity> loaded = {};
};

/// How the tasks of a job reach each other, and what travels between them.
struct LinkChoice {
  std::string kind = "auto";  // the link between tasks: auto, inproc, shm or tcp
  std::string bind;           // the address to listen at; empty: this task's address in the spec
  Security security;          // which links are encrypted, and this task's proof
  /// The engine of an all-reduce: "link", over the links between tasks, or "mpi", for tasks that
  /// mpirun has started.
  std::string collectives = "link";
  /// The type in which contributions travel between hosts: kFloat32, kBFloat16, kFloat16, or
  /// kUInt8, which means int8 with scales (values then travel as bfloat16). Tasks that share memory
  /// round nothing.
  DType wire = DType::kFloat32;
  /// The number of elements that a worker sends of each 256 elements of a contribution: those of
  /// the largest magnitude. 0: the worker sends all elements.
  int top_k = 0;
  /// True when a worker adds to its next contribution what the last one lost: by rounding to
  /// `wire`, or by leaving out elements (top_k).
  bool error_feedback = false;
  double join_timeout_s = 300;  // the seconds that a task waits for the others at its start
  /// The seconds within which a task may reconnect after a connection was cut. 0: a cut connection
  /// counts as lost at once.
  double reconnect_timeout_s = 30;
};

/// The way in which the records of a data set are divided among the workers of a job.
enum class Sharding : std::uint8_t {
  kStatic,   // in every epoch, each worker has its own part
  kDynamic,  // each worker gets the next block when it needs one (Pipeline::share_out)
};

/// The fate of a contribution with NaN or infinity.
enum class OnNan : std::uint8_t {
  kStop,   // training ends with an error that names the worker, the variable and the step
  kSkip,   // the contribution is applied nowhere, and the report counts it
  kApply,  // the contribution is applied like any other
};

/// How all workers of a job train. One process has the same options.
struct TrainOptions {
  /// The type in which matrix products and convolutions are computed: kFloat32, or kBFloat16 with
  /// sums in float32. Variables, slots, contributions, losses and norms are float32 either way.
  DType precision = DType::kFloat32;
  /// The number of steps of a worker that make one global step: the mean of their gradients is the
  /// worker's contribution.
  int accumulate = 1;
  /// True when batch norm takes the statistics of the whole batch, of which each worker of an
  /// all-reduce, or each tower, has a part.
  bool sync_batch_norm = false;
  /// The fate of a contribution with NaN or infinity. A session without NanGuard treats kStop as
  /// kApply.
  OnNan on_nan = OnNan::kStop;
  /// The way in which the workers divide the records of their data.
  Sharding sharding = Sharding::kStatic;
};

/// The answer of a launcher to a task that fails.
enum class OnFailure : std::uint8_t {
  kStop,      // the launcher ends the other tasks
  kContinue,  // the launcher lets the other tasks go on
  kRestart,   // the launcher starts the task again
};

/// The tasks that a launcher starts on this machine, and what a task knows about its launcher.
struct LaunchOptions {
  int ps = 0;       // the number of ps tasks that the launcher starts
  int workers = 0;  // the number of workers that the launcher starts
  /// True when a separate task evaluates the job's checkpoints, so that the chief need not.
  bool evaluator = false;
  OnFailure on_failure = OnFailure::kStop;  // the launcher's answer to a task that fails
  bool launched = false;  // true: a launcher started this task and sums up the run
  /// True when the launcher does not know the task's flags (`paceline launch -- COMMAND`). Then the
  /// chief, and not the launcher, makes the folder RunOptions::out and writes the report there.
  bool in_command = false;
};

/// A job: its tasks, the task that this process runs, and how the tasks work together. run_program
/// reads a Cluster from flags. A default-constructed Cluster is the job of a single process.
struct Cluster {
  /// The part of a process in the job.
  enum class Process : std::uint8_t {
    kAlone,      // the only process of the job
    kLauncher,   // starts tasks on this machine
    kTask,       // a task of the cluster
    kEvaluator,  // evaluates the checkpoints of a job, and does not belong to the job
  };
  Process process = Process::kAlone;  // the part of this process
  ClusterSpec spec;                   // empty when alone
  TaskId task;                        // worker:0 when alone
  std::string cluster_id;             // an id that all tasks of a run have in common
  /// True: spec.ps are `paceline server` processes, which outlive the job.
  bool existing_servers = false;
  Strategy strategy;     // how the workers share what they learn
  TrainOptions train;    // how each worker trains
  LinkChoice links;      // how the tasks reach each other
  LaunchOptions launch;  // how the tasks are started
  DeviceChoice device;   // the device of this task
  /// The number of devices that train in this task, each on a batch of its own: `device` and the
  /// devices with the next indices, or, for "cpu", as many groups of cores. The task's contribution
  /// is the mean of the contributions of its towers.
  int towers = 1;
  int threads = 0;              // the threads of all towers of this task together; 0: all cores
  bool show_placement = false;  // true: this task prints which ps keeps which variables

  /// True when the job shares out the records of its data among several tasks while they train.
  bool shares_records() const {
    return train.sharding == Sharding::kDynamic && process == Process::kTask;
  }
  /// True when there are other tasks.
  bool distributed() const { return process != Process::kAlone; }
  /// True when this task initialises the variables and saves them.
  bool is_chief() const {
    return process != Process::kEvaluator && task.role == TaskId::Role::kWorker && task.index == 0;
  }
  /// The number of workers of the job; 1 when alone.
  int workers() const { return spec.workers.empty() ? 1 : int(spec.workers.size()); }
};

}  // namespace paceline
