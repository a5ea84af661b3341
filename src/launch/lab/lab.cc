#include "launch/lab/lab.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "launch/lab/lab_options.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr const char* kNamePrefix = "paceline-lab-";
constexpr int kLossParts = 10000;

struct CommandEnd {
  bool well = false;
  std::string output;
};

// We write the words of the command, so they need no quoting.
CommandEnd call(const std::string& command) {
  CommandEnd end;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return end;
  std::array<char, 512> part{};
  for (std::size_t size = 0; (size = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    end.output.append(part.data(), size);
  }
  const int status = pclose(pipe);
  end.well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return end;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void must(const std::string& command) {
  const CommandEnd end = call(command);
  if (end.well) return;
  const std::string why = first_line(end.output);
  throw Error(ErrorCode::kUnavailable,
              fmt::format("emulated hosts cannot be made here: `{}` failed{}", command,
                          why.empty() ? "" : ": " + why));
}

// The queue holds the bytes of 20 ms. A burst holds those of 1 ms, but at least two large segments.
std::string rate_of(double gbps) {
  const double bytes_per_ms = gbps * 1e9 / 8 / 1000;
  const auto burst = std::max(std::int64_t(131072), std::int64_t(bytes_per_ms));
  return fmt::format("tbf rate {:.0f}kbit burst {} latency 20ms", gbps * 1e6, burst);
}

// Removes the hosts of labs whose processes are gone.
void remove_abandoned() {
  std::istringstream names(call("ip netns list").output);
  for (std::string line; std::getline(names, line);) {
    const std::string name = line.substr(0, line.find(' '));
    if (!name.starts_with(kNamePrefix)) continue;
    const pid_t owner = std::atoi(name.c_str() + std::string(kNamePrefix).size());
    if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) call("ip netns del " + name);
  }
}

}  // namespace

Lab::Lab(int hosts, const LabLinks& links)
    : hosts_(hosts), prefix_([] {
        static std::atomic<int> labs{0};
        return fmt::format("{}{}-{}-", kNamePrefix, getpid(), labs++);
      }()) {
  if (geteuid() != 0) {
    throw Error(ErrorCode::kUnavailable,
                "emulated hosts are network namespaces, which only root may make: run it as root");
  }
  ip_ = first_line(call("command -v ip").output);
  if (ip_.empty() || !call("command -v tc").well) {
    throw Error(ErrorCode::kUnavailable,
                "emulated hosts need the programs ip and tc: apt-get install iproute2");
  }
  remove_abandoned();
  try {
    make(links);
  } catch (...) {
    remove();
    throw;
  }
}

Lab::~Lab() { remove(); }

void Lab::make(const LabLinks& links) {
  const std::string hub = switch_name();
  must("ip netns add " + hub);
  must(fmt::format("ip -n {} link add bridge0 type bridge", hub));
  must(fmt::format("ip -n {} link set bridge0 up", hub));
  for (int host = 0; host < hosts_; ++host) {
    const std::string name = host_name(host);
    must("ip netns add " + name);
    must(fmt::format("ip -n {0} link add eth0 type veth peer name port{1} netns {2}", name, host,
                     hub));
    must(fmt::format("ip -n {} addr add {}/16 dev eth0", name, lab_address(host)));
    must(fmt::format("ip -n {} link set lo up", name));
    must(fmt::format("ip -n {} link set eth0 up", name));
    must(fmt::format("ip -n {} link set port{} master bridge0 up", hub, host));
    must(fmt::format("tc -n {} qdisc add dev eth0 root handle 1: {}", name, rate_of(links.gbps)));
    must(fmt::format("tc -n {} qdisc add dev port{} root handle 1: {}", hub, host,
                     rate_of(links.gbps)));
    if (links.delay_ms > 0) {
      must(fmt::format("tc -n {} qdisc add dev eth0 parent 1: netem delay {}ms limit 100000", name,
                       links.delay_ms));
    }
  }
}

void Lab::remove() {
  for (int host = 0; host < hosts_; ++host) call("ip netns del " + host_name(host));
  call("ip netns del " + switch_name());
}

std::string Lab::host_name(int host) const { return prefix_ + std::to_string(host); }
std::string Lab::switch_name() const { return prefix_ + "switch"; }

std::vector<std::string> Lab::on_host(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> all = {ip_, "netns", "exec", host_name(host)};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void Lab::set_rate(int host, double gbps) {
  must(fmt::format("tc -n {} qdisc change dev eth0 root handle 1: {}", host_name(host),
                   rate_of(gbps)));
  must(fmt::format("tc -n {} qdisc change dev port{} root handle 1: {}", switch_name(), host,
                   rate_of(gbps)));
}

// The switch drops the packets, as a cable would. A host would notice if it dropped its own
// packets.
void Lab::lose(int host, double share) {
  if (!call("command -v nft").well) {
    throw Error(ErrorCode::kUnavailable,
                "packets are lost by the program nft: apt-get install nftables");
  }
  const std::string nft = fmt::format("ip netns exec {} nft ", switch_name());
  const std::string table = fmt::format("bridge host{}", host);
  call(nft + "delete table " + table);
  const int lost = std::clamp(int(std::lround(share * kLossParts)), 0, kLossParts - 1);
  if (lost == 0) return;
  must(nft + "add table " + table);
  must(fmt::format("{}'add chain {} lose {{ type filter hook forward priority 0; }}'", nft, table));
  for (const char* const way : {"iifname", "oifname"}) {
    must(fmt::format("{}'add rule {} lose {} port{} numgen random mod {} < {} drop'", nft, table,
                     way, host, kLossParts, lost));
  }
}

// The port leaves the switch but stays up, so that the host does not notice: its own end stays up,
// too.
void Lab::cut(int host) {
  must(fmt::format("ip -n {} link set port{} nomaster", switch_name(), host));
}

void Lab::mend(int host) {
  must(fmt::format("ip -n {} link set port{} master bridge0", switch_name(), host));
}

// Isolated ports of a switch pass nothing to each other.
void Lab::isolate(int host, bool isolated) {
  must(fmt::format("ip -n {} link set port{} type bridge_slave isolated {}", switch_name(), host,
                   isolated ? "on" : "off"));
}

void Lab::part(int host, int other) {
  for (const int one : {host, other}) isolate(one, true);
}

void Lab::reunite(int host, int other) {
  for (const int one : {host, other}) isolate(one, false);
}

std::string why_no_lab() {
  try {
    const Lab lab(1, {});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace paceline
