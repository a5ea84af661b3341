#include "cli/meeting_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/address.h"
#include "base/cores.h"
#include "base/this_process.h"
#include "cli/flags/placed_flags.h"
#include "launch/job_security.h"
#include "launch/meeting_point.h"
#include "net/held_ports.h"
#include "paceline/error.h"

namespace paceline {
namespace {

bool is_ipv6(const Address& address) { return address.host.find(':') != std::string::npos; }

/// Every address of this host, of the family and at the port of that one.
std::string everywhere_at(const Address& address) {
  return text_of({everywhere(address.host), address.port});
}

std::string place_of(const MeetingPlan& plan) {
  return fmt::format("{} ({})", plan.launcher, plan.seen);
}

}  // namespace

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

MeetingJob::~MeetingJob() = default;

void MeetingJob::hold_meeting(Duration patience) {
  const bool holds =
      plan_.any_may_hold ? plan_.one_host || is_of_this_host(plan_.address) : plan_.rank == 0;
  if (!holds) return;
  try {
    point_ = std::make_unique<MeetingPoint>(
        plan_.one_host ? plan_.address : everywhere_at(parse_address(plan_.address)), plan_.size,
        plan_.ps, patience, security_);
  } catch (const Error& error) {
    // Another process of this host was faster, or another program has the port: attending tells.
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

}  // namespace paceline
