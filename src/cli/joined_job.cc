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

#include "base/address.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/this_process.h"
#include "cli/flags/command_line.h"
#include "cli/flags/launch_environment.h"
#include "cli/flags/meeting_plan.h"
#include "cli/flags/placed_flags.h"
#include "cli/flags/process_reader.h"
#include "cli/flags/security_reader.h"
#include "launch/job_security.h"
#include "launch/meeting_point.h"
#include "net/held_ports.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "params/collective/collectives_kind.h"
#include "params/collective/mpi_calls.h"
#include "params/collective/mpi_library.h"
#include "params/wire/meeting_messages.h"

namespace paceline {
namespace {

/// A job whose launcher tells each process only its rank and one common address. The processes meet
/// at that address, and learn the addresses of all tasks.
///
/// The object holds the meeting point, or stays connected to it, for its whole life. So a rank that
/// is started again finds the others there, and a rank that was started twice is refused.
class MeetingJob : public JoinedJob {
 public:
  /// Waits for the others, for as long as `patience`. Throws kUsage if links leave the host and
  /// there is no key, kUnavailable if nobody answers at the meeting point or its port is in use,
  /// and kFailedPrecondition with the meeting's reason, which names the ranks that are late.
  MeetingJob(const MeetingPlan& plan, const Security& security, Duration patience);

  /// Returns the flags that describe this job: --cluster, --task, --placed, --threads, and --bind
  /// if there are several hosts.
  std::vector<GivenFlag> flags() const;

 private:
  void hold_meeting(Duration patience);
  Attendance attendance(Duration patience) const;

  const MeetingPlan plan_;
  const std::shared_ptr<const LinkSecurity> security_;
  std::unique_ptr<HeldPorts> port_;      // at which this task will listen
  std::unique_ptr<MeetingPoint> point_;  // null where another process holds it
  std::unique_ptr<MeetingGuest> guest_;
  Roster roster_;
};

bool is_ipv6(const Address& address) { return address.host.find(':') != std::string::npos; }

/// Returns "0.0.0.0:PORT" or "[::]:PORT", all addresses of this host in the family of `address`,
/// with its port.
std::string everywhere_at(const Address& address) {
  return text_of({everywhere(address.host), address.port});
}

std::string place_of(const MeetingPlan& plan) {
  return fmt::format("{} ({})", plan.launcher, plan.seen);
}

MeetingJob::MeetingJob(const MeetingPlan& plan, const Security& security, Duration patience)
    : plan_(plan),
      security_(secure_meeting(security, plan.one_host ? "" : plan.address, plan.key_hint)),
      port_(std::make_unique<HeldPorts>(1)) {
  const Deadline deadline = Deadline::after(patience);
  try {
    hold_meeting(patience);
    guest_ = std::make_unique<MeetingGuest>(security_);
    const Address address = parse_address(plan_.address);
    const std::string here = text_of({is_ipv6(address) ? "::1" : "127.0.0.1", address.port});
    roster_ =
        guest_->attend(point_ != nullptr ? here : plan_.address, attendance(patience), deadline);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("{}: the meeting point {}{}: {}", place_of(plan_), plan_.address,
                    plan_.why_there.empty() ? "" : " (" + plan_.why_there + ")", error.what()));
  }
  if (roster_.addresses.size() != std::size_t(plan_.size))
    throw Error(ErrorCode::kDataLoss,
                fmt::format("{}: the meeting point {} told {} addresses", place_of(plan_),
                            plan_.address, roster_.addresses.size()));
}

void MeetingJob::hold_meeting(Duration patience) {
  const bool holds =
      plan_.any_may_hold ? plan_.one_host || is_of_this_host(plan_.address) : plan_.rank == 0;
  if (!holds) return;
  try {
    point_ = std::make_unique<MeetingPoint>(
        plan_.one_host ? plan_.address : everywhere_at(parse_address(plan_.address)), plan_.size,
        plan_.ps, patience, security_);
  } catch (const Error& error) {
    // Another process of this host may have been faster, or another program may have the port:
    // attending the meeting shows which.
    if (!plan_.any_may_hold || error.code() != ErrorCode::kUnavailable) throw;
  }
}

Attendance MeetingJob::attendance(Duration patience) const {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  return {.rank = plan_.rank,
          .size = plan_.size,
          .ps = plan_.ps,
          .incarnation = std::uint64_t(since_epoch.count()),
          .port = parse_address(port_->addresses().front()).port,
          .patience_ms = std::uint32_t(std::min<std::int64_t>(patience_ms, UINT32_MAX)),
          .meeting = parse_address(plan_.address).host,
          .process = this_process()};
}

std::vector<GivenFlag> MeetingJob::flags() const {
  const std::string& own = roster_.addresses[std::size_t(plan_.rank)];
  const auto here = std::ranges::count(roster_.addresses, host_of(own),
                                       [](const std::string& one) { return host_of(one); });
  const int threads = std::max(1, usable_cores() / std::max(1, int(here)));
  std::vector<GivenFlag> flags =
      placed_flags(plan_.launcher, plan_.seen, plan_.rank, roster_.addresses, plan_.ps);
  const std::string place = flags.front().place;
  flags.push_back({"--threads", {std::to_string(threads)}, place});
  if (!is_loopback(own)) flags.push_back({"--bind", {everywhere_at(parse_address(own))}, place});
  return flags;
}

// The tasks of a job that mpirun starts, if they exchange their addresses by MPI.

/// Joins the other processes of mpirun, and leaves them when the object is destroyed. If an
/// exception destroys it, mpirun ends the others.
class MpiJob : public JoinedJob {
 public:
  /// Waits for the others, and tells them where this task will listen. The first `ps` of them are
  /// parameter servers. Throws kUnavailable with MPI's reason.
  MpiJob(const MpiCalls& calls, int workers_here, int ps);
  ~MpiJob() override;

  /// Returns the flags that describe this job: --cluster, --task, --placed, --threads, and --bind
  /// if there are several hosts.
  std::vector<GivenFlag> flags() const;

 private:
  const MpiCalls& calls_;
  const int workers_here_, ps_;
  const int exceptions_;
  const HeldPorts port_;
  std::vector<std::string> addresses_;
  std::string port_text_;
};

/// Joins the other processes by MPI, and adds the flags that describe the job. It does so if Open
/// MPI has started this process, no flag says which task the process is, and either the processes
/// are on several hosts or --collectives mpi is given. Otherwise returns null, and so it does
/// without a plug-in for MPI; but if --collectives mpi asks for the plug-in, throws
/// kFailedPrecondition.
std::unique_ptr<JoinedJob> join_mpi_job(FlagValues& values);

const char* const kPlace = "the environment of mpirun";
constexpr const char* kSayWhichTask[] = {"--cluster",  "--ps-hosts",   "--worker-hosts", "--task",
                                         "--job-name", "--task-index", "--launched"};

/// Where a process will listen; each process sends this to the others.
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
