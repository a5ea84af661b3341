#include "cli/joined_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cores.h"
#include "cli/flags/command_line.h"
#include "cli/flags/launch_environment.h"
#include "cli/flags/meeting_plan.h"
#include "cli/flags/placed_flags.h"
#include "cli/flags/process_reader.h"
#include "cli/flags/security_reader.h"
#include "cli/meeting_job.h"
#include "net/held_ports.h"
#include "paceline/cluster.h"
#include "params/collective/collectives_kind.h"
#include "params/collective/mpi_calls.h"
#include "params/collective/mpi_library.h"

namespace paceline {
namespace {

// The tasks of a job that mpirun starts, when they exchange their addresses by MPI.

/// Has joined the other processes of mpirun, and leaves them at the end of its life, unless an
/// exception ends that: mpirun then ends the others.
class MpiJob : public JoinedJob {
 public:
  /// Waits for the others, and tells them where this task will listen. The first `ps` of them are
  /// parameter servers. Throws kUnavailable with MPI's reason.
  MpiJob(const MpiCalls& calls, int workers_here, int ps);
  ~MpiJob() override;

  /// The flags that say the same: --cluster, --task, --placed, --threads, and --bind when there are
  /// several hosts.
  std::vector<GivenFlag> flags() const;

 private:
  const MpiCalls& calls_;
  const int workers_here_, ps_;
  const int exceptions_;
  const HeldPorts port_;
  std::vector<std::string> addresses_;
  std::string port_text_;
};

/// When Open MPI has started this process, no flag says what its task is, and the processes are on
/// several hosts or --collectives mpi is given: joins the others by MPI, and adds the flags that
/// say so. Else returns null; without a plug-in for MPI, too, unless --collectives mpi asks for it:
/// then it throws kFailedPrecondition.
std::unique_ptr<JoinedJob> join_mpi_job(FlagValues& values);

const char* const kPlace = "the environment of mpirun";
constexpr const char* kSayWhichTask[] = {"--cluster",  "--ps-hosts",   "--worker-hosts", "--task",
                                         "--job-name", "--task-index", "--launched"};

/// A process tells this to the others.
struct Listener {
  char host[256] = {};
  char port[16] = {};
};

Listener listener_at(const std::string& address) {
  Listener own;
  if (::gethostname(own.host, sizeof own.host - 1) != 0) std::strcpy(own.host, "localhost");
  const std::string port = address.substr(address.rfind(':') + 1);
  std::strncpy(own.port, port.c_str(), sizeof own.port - 1);
  return own;
}

MpiJob::MpiJob(const MpiCalls& calls, int workers_here, int ps)
    : calls_(calls),
      workers_here_(workers_here),
      ps_(ps),
      exceptions_(std::uncaught_exceptions()),
      port_(1) {
  check_mpi(calls.start(), "joining the other processes");
  const Listener own = listener_at(port_.addresses().front());
  port_text_ = own.port;
  std::vector<Listener> all(std::size_t(calls.size()));
  check_mpi(calls.exchange(&own, sizeof own, all.data()), "exchanging addresses");
  for (const Listener& one : all) {
    const char* const host = workers_here == calls.size() ? "127.0.0.1" : one.host;
    addresses_.push_back(fmt::format("{}:{}", host, one.port));
  }
}

MpiJob::~MpiJob() {
  if (std::uncaught_exceptions() == exceptions_) calls_.end();
}

std::vector<GivenFlag> MpiJob::flags() const {
  const int threads = std::max(1, usable_cores() / std::max(1, workers_here_));
  std::vector<GivenFlag> flags =
      placed_flags("Open MPI", fmt::format("rank {} of {}", calls_.rank(), calls_.size()),
                   calls_.rank(), addresses_, ps_);
  flags.push_back({"--threads", {std::to_string(threads)}, kPlace});
  if (workers_here_ != calls_.size())
    flags.push_back({"--bind", {"0.0.0.0:" + port_text_}, kPlace});
  return flags;
}

std::unique_ptr<JoinedJob> join_mpi_job(FlagValues& values) {
  const auto given = [&](const char* flag) { return values.given(flag); };
  if (!rank_by_mpirun() || !may_read(values, "openmpi") ||
      std::ranges::any_of(kSayWhichTask, given))
    return nullptr;
  const int workers_here = number_in_environment("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(1);
  const bool one_host = number_in_environment("OMPI_COMM_WORLD_SIZE") == workers_here;
  const bool over_links = collectives_kind(values.text("--collectives")).over_links;
  if (over_links && (one_host || !has_mpi_calls())) return nullptr;
  const auto ps = values.whole_number("--ps", 0, kMostTasks).value_or(0);
  auto job = std::make_unique<MpiJob>(mpi_calls(), workers_here, int(ps));
  for (const GivenFlag& flag : job->flags()) {
    if (!values.given(flag.name)) values.add(flag);
  }
  return job;
}

}  // namespace

std::unique_ptr<JoinedJob> join_job(FlagValues& values) {
  if (std::unique_ptr<JoinedJob> job = join_mpi_job(values)) return job;
  const std::optional<MeetingPlan> plan = meeting_plan(values, own_environment);
  if (!plan) return nullptr;
  return values.with_places([&]() -> std::unique_ptr<JoinedJob> {
    const double patience_s =
        values.positive_number("--join-timeout").value_or(Cluster().links.join_timeout_s);
    auto job = std::make_unique<MeetingJob>(
        *plan, read_security(values),
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(patience_s)));
    for (const GivenFlag& flag : job->flags()) {
      if (!values.given(flag.name)) values.add(flag);
    }
    return job;
  });
}

}  // namespace paceline
