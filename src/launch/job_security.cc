#include "launch/job_security.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
#include "net/tcp/name_lookup.h"
#include "paceline/error.h"
#include "params/collective/collectives_kind.h"

namespace paceline {

namespace {

constexpr Duration kLookUpWithin = std::chrono::seconds(5);

/// Returns the bytes of an IP address, without its port; empty for addresses of other families.
std::string ip_of(const sockaddr* address) {
  const auto bytes = [&](const auto& ip) {
    return std::string(reinterpret_cast<const char*>(&ip), sizeof ip);
  };
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET)
    return bytes(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  if (address->sa_family == AF_INET6)
    return bytes(reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return "";
}

std::vector<std::string> ips_of_this_host() {
  std::vector<std::string> ips;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return ips;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (const std::string ip = ip_of(one->ifa_addr); !ip.empty()) ips.push_back(ip);
  }
  return ips;
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kUsage, message); }

[[noreturn]] void refuse_without_proof(const std::string& why, const std::string& hint = "") {
  refuse(
      fmt::format("{}, which needs a proof that all tasks belong to the job: `paceline key` "
                  "makes a key and says how to copy it, --key-file names it{}; --insecure does "
                  "without, and {}",
                  why, hint.empty() ? "" : " (" + hint + ")", kGivenUp));
}

/// Returns, in words, the first task whose address belongs to another host.
std::optional<std::string> task_elsewhere(const ClusterSpec& spec) {
  const auto find = [](const char* role, const std::vector<std::string>& addresses) {
    const auto at = std::ranges::find_if_not(addresses, is_of_this_host);
    if (at == addresses.end()) return std::optional<std::string>();
    return std::optional(
        fmt::format("{}:{} at {} is on another host", role, at - addresses.begin(), *at));
  };
  const std::optional<std::string> ps = find("ps", spec.ps);
  return ps ? ps : find("worker", spec.workers);
}

/// Returns, in words, why links of the job are encrypted; nothing if none is.
std::optional<std::string> why_encrypted(const Cluster& cluster, const std::string& apart) {
  const Tls tls = cluster.links.security.tls;
  if (tls == Tls::kNever) return std::nullopt;
  if (tls == Tls::kAlways) return "--tls on encrypts every link";
  if (!apart.empty()) return apart;
  return task_elsewhere(cluster.spec);
}

std::shared_ptr<const LinkSecurity> load(const Security& security) {
  try {
    return load_security(security);
  } catch (const Error& error) {
    refuse(error.what());
  }
}

}  // namespace

bool is_of_this_host(const std::string& address) {
  if (is_loopback(address)) return true;
  try {
    const auto found = look_up(parse_address(address), Deadline::after(kLookUpWithin));
    const std::vector<std::string> own = ips_of_this_host();
    return std::ranges::all_of(found, [&](const SocketAddress& one) {
      return is_loopback(text_of(one)) || std::ranges::count(own, ip_of(one.get())) > 0;
    });
  } catch (const Error&) {
    return false;
  }
}

std::shared_ptr<const LinkSecurity> secure_job(const Cluster& cluster, const std::string& apart,
                                               const std::string& hint) {
  if (!cluster.distributed() || cluster.process == Cluster::Process::kEvaluator) return nullptr;
  std::shared_ptr<const LinkSecurity> loaded = load(cluster.links.security);
  const std::optional<std::string> why = why_encrypted(cluster, apart);
  if (!why) return loaded;
  if (!collectives_kind(cluster.links.collectives).over_links) {
    refuse(
        fmt::format("--collectives mpi: {}, and MPI sends in the clear: --insecure accepts "
                    "that ({}); --collectives link encrypts",
                    *why, kGivenUp));
  }
  if (loaded->has_proof()) return loaded;
  if (cluster.process != Cluster::Process::kLauncher || cluster.existing_servers)
    refuse_without_proof(*why, hint);
  auto with_key = std::make_shared<LinkSecurity>(*loaded);
  with_key->key = SecretKey::make();
  return with_key;
}

std::shared_ptr<const LinkSecurity> secure_server(const Security& security, const std::string& bind,
                                                  const char* flag, const char* callers) {
  std::shared_ptr<const LinkSecurity> loaded = load(security);
  const bool encrypts =
      security.tls == Tls::kAlways || (security.tls == Tls::kOffHost && !is_loopback(bind));
  if (encrypts && !loaded->has_proof())
    refuse_without_proof(fmt::format("{} {}: {} of other hosts may come", flag, bind, callers));
  return loaded;
}

std::shared_ptr<const LinkSecurity> secure_calls(const Security& security,
                                                 const std::vector<std::string>& addresses) {
  std::shared_ptr<const LinkSecurity> loaded = load(security);
  if (security.tls == Tls::kNever || loaded->has_proof()) return loaded;
  if (security.tls == Tls::kAlways) refuse_without_proof("--tls on encrypts every link");
  const auto elsewhere = std::ranges::find_if_not(addresses, is_of_this_host);
  if (elsewhere != addresses.end())
    refuse_without_proof(fmt::format("{} is on another host", *elsewhere));
  return loaded;
}

std::shared_ptr<const LinkSecurity> secure_meeting(const Security& security,
                                                   const std::string& elsewhere,
                                                   const std::string& hint) {
  std::shared_ptr<const LinkSecurity> loaded = load(security);
  const bool encrypts =
      security.tls == Tls::kAlways || (security.tls == Tls::kOffHost && !elsewhere.empty());
  if (encrypts && !loaded->has_proof())
    refuse_without_proof(
        elsewhere.empty()
            ? "--tls on encrypts every link"
            : fmt::format("the processes meet at {}, also from other hosts", elsewhere),
        hint);
  return loaded;
}

}  // namespace paceline
