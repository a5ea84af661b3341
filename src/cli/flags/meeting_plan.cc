#include "cli/flags/meeting_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/launch_port.h"
#include "cli/flags/process_reader.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// Reads the variables of one launcher, and remembers them for errors.
class Variables {
 public:
  /// `all` are the variables of which none may be missing: without one, the others are of no use.
  Variables(std::string launcher, const Environment& environment,
            std::initializer_list<const char*> all)
      : launcher_(std::move(launcher)), environment_(environment), all_(all) {}

  std::string_view text(const char* name) const { return text_in(environment_, name); }
  bool given(const char* name) const { return !text(name).empty(); }

  std::string needed(const char* name) {
    if (!given(name)) refuse_half(name);
    seen += fmt::format("{}{}={}", seen.empty() ? "" : ", ", name, text(name));
    return std::string(text(name));
  }
  int number(const char* name, int least, int most) {
    const std::string digits = needed(name);
    int number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, status] = std::from_chars(digits.data(), end, number);
    if (status != std::errc() || stop != end || number < least || number > most)
      refuse(fmt::format("{}={}: must be a whole number from {} to {}", name, digits, least, most));
    return number;
  }
  std::optional<int> number_if_given(const char* name, int least, int most) {
    return given(name) ? std::optional(number(name, least, most)) : std::nullopt;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    refuse_flags(fmt::format("{}: {}", launcher_, why));
  }

  std::string seen;

 private:
  [[noreturn]] void refuse_half(const char* missing) const {
    std::vector<std::string> set;
    for (const char* const name : all_) {
      if (given(name)) set.push_back(fmt::format("{}={}", name, text(name)));
    }
    refuse(fmt::format(
        "{} is not set, and {} {}: its processes find each other by all of {}; "
        "--alone trains without the others",
        missing, fmt::join(set, ", "), set.size() == 1 ? "is" : "are", fmt::join(all_, ", ")));
  }

  const std::string launcher_;
  const Environment& environment_;
  const std::vector<const char*> all_;
};

void read_ranks(Variables& variables, const char* rank, const char* size, MeetingPlan& plan) {
  plan.rank = variables.number(rank, 0, kMostTasks - 1);
  plan.size = variables.number(size, 1, kMostTasks);
  if (plan.rank < plan.size) return;
  variables.refuse(fmt::format("{}={} and {}={} contradict each other: ranks go from 0 to {}", rank,
                               plan.rank, size, plan.size, plan.size - 1));
}

std::string address_of(Variables& variables, const char* host, const char* port) {
  const std::string name = variables.needed(host);
  const int number = variables.number(port, 1, 65535);
  const bool bare_ipv6 = name.find(':') != name.npos && !name.starts_with('[');
  const std::string address = fmt::format("{}:{}", bare_ipv6 ? "[" + name + "]" : name, number);
  try {
    return text_of(parse_address(address));
  } catch (const Error& error) {
    variables.refuse(fmt::format("{}={}, {}={}: {}", host, name, port, number, error.what()));
  }
}

bool all_on_one_host(Variables& variables, const MeetingPlan& plan) {
  const auto here = variables.number_if_given("LOCAL_WORLD_SIZE", 1, kMostTasks);
  const auto local = variables.number_if_given("LOCAL_RANK", 0, kMostTasks - 1);
  if (here && *here > plan.size)
    variables.refuse(fmt::format("LOCAL_WORLD_SIZE={} and WORLD_SIZE={} contradict each other",
                                 *here, plan.size));
  if (here && local && *local >= *here)
    variables.refuse(
        fmt::format("LOCAL_RANK={} and LOCAL_WORLD_SIZE={} contradict each other", *local, *here));
  return here == plan.size;
}

void stay_on_loopback(MeetingPlan& plan) {
  plan.address = text_of({"127.0.0.1", parse_address(plan.address).port});
}

struct MpiVariables {
  const char *launcher, *rank, *size;
  const char* here;  // the number of processes on this host
  // Why processes on several hosts cannot be joined.
  const char* elsewhere;
};

MeetingPlan meeting_of_mpi(const Environment& environment, const MpiVariables& names,
                           const std::string& job) {
  MeetingPlan plan;
  plan.launcher = names.launcher;
  Variables variables(plan.launcher, environment, {names.rank, names.size, names.here});
  read_ranks(variables, names.rank, names.size, plan);
  const int here = variables.number(names.here, 1, kMostTasks);
  if (here > plan.size)
    variables.refuse(fmt::format("{}={} and {}={} contradict each other", names.here, here,
                                 names.size, plan.size));
  if (here < plan.size)
    variables.refuse(
        fmt::format("{} of {} processes are on this host ({}={}, {}={}), and {}; "
                    "else give each --cluster and --task",
                    here, plan.size, names.here, here, names.size, plan.size, names.elsewhere));
  plan.seen = variables.seen;
  plan.one_host = true;
  plan.address = text_of({"127.0.0.1", launch_port(fmt::format("mpi {}", job))});
  plan.why_there = "a port that follows from the number of the job";
  return plan;
}

// Returns the number of the nearest ancestor process whose environment lacks the variable: this
// ancestor has set the variable for all its processes.
std::string launching_process(const std::string& variable) {
  for (pid_t process = ::getppid(); process > 1;) {
    std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (('\0' + environment).find('\0' + variable + '=') == environment.npos)
      return std::to_string(process);
    std::ifstream stat(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(stat, text);
    // "4711 (name with spaces) S 4700 …"
    std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string state;
    process = 0;
    rest >> state >> process;
  }
  return "1";
}

}  // namespace

MeetingPlan meeting_of_torchrun(const Environment& environment) {
  MeetingPlan plan;
  plan.launcher = "torchrun";
  Variables variables(plan.launcher, environment,
                      {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"});
  read_ranks(variables, "RANK", "WORLD_SIZE", plan);
  plan.address = address_of(variables, "MASTER_ADDR", "MASTER_PORT");
  plan.seen = variables.seen;
  plan.one_host = all_on_one_host(variables, plan) || is_loopback(plan.address);
  // torchrun's agent itself listens at MASTER_PORT, on the host of MASTER_ADDR, where rank 0 need
  // not run.
  if (variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    plan.any_may_hold = true;
    const std::string_view run = variables.text("TORCHELASTIC_RUN_ID");
    Address address = parse_address(plan.address);
    plan.why_there = fmt::format(
        "torchrun's agent holds MASTER_PORT={}, so the port follows from that number and from "
        "TORCHELASTIC_RUN_ID={}",
        address.port, run);
    address.port = launch_port(fmt::format("{} {}", run, address.port));
    plan.address = text_of(address);
  }
  if (plan.one_host) stay_on_loopback(plan);
  return plan;
}

MeetingPlan meeting_of_pet(const Environment& environment) {
  MeetingPlan plan;
  plan.launcher = "Kubeflow (PET)";
  Variables variables(plan.launcher, environment,
                      {"PET_NODE_RANK", "PET_NNODES", "PET_MASTER_ADDR", "PET_MASTER_PORT"});
  if (const std::string_view nodes = variables.text("PET_NNODES"); nodes.find(':') != nodes.npos)
    variables.refuse(
        fmt::format("PET_NNODES={}: the number of nodes must be fixed, as in "
                    "PET_NNODES={}",
                    nodes, nodes.substr(nodes.find(':') + 1)));
  read_ranks(variables, "PET_NODE_RANK", "PET_NNODES", plan);
  plan.address = address_of(variables, "PET_MASTER_ADDR", "PET_MASTER_PORT");
  plan.seen = variables.seen;
  plan.one_host = is_loopback(plan.address);
  return plan;
}

MeetingPlan meeting_of_open_mpi(const Environment& environment) {
  return meeting_of_mpi(
      environment,
      {.launcher = "Open MPI",
       .rank = "OMPI_COMM_WORLD_RANK",
       .size = "OMPI_COMM_WORLD_SIZE",
       .here = "OMPI_COMM_WORLD_LOCAL_SIZE",
       .elsewhere = "this build has no plug-in for MPI (scripts/install_dependencies --mpi, and "
                    "build again), by which processes of several hosts exchange their addresses"},
      std::string(text_in(environment, "PMIX_NAMESPACE")));
}

MeetingPlan meeting_of_pmi(const Environment& environment) {
  return meeting_of_mpi(environment,
                        {.launcher = "MPI (PMI)",
                         .rank = "PMI_RANK",
                         .size = "PMI_SIZE",
                         .here = "MPI_LOCALNRANKS",
                         .elsewhere = "only Open MPI's mpirun joins processes of several hosts"},
                        launching_process("PMI_RANK"));
}

}  // namespace paceline
