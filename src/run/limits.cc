#include "run/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/grouped_digits.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// True if the message has the system's text for this errno. Errors of the system arrive here in
// that form.
bool says(std::string_view message, int reason) {
  return message.find(std::generic_category().message(reason)) != message.npos;
}

std::string limit_text(__rlimit_resource resource, const char* format, std::uint64_t unit) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(fmt::runtime(format), grouped_digits(std::int64_t(limit.rlim_cur / unit)));
}

// Returns the limit on processes and threads: the smaller of the user's and the control group's.
std::string process_limit_text(const ControlGroupLimits& groups) {
  rlimit user = {};
  const bool known = getrlimit(RLIMIT_NPROC, &user) == 0 && user.rlim_cur != RLIM_INFINITY;
  if (groups.processes && (!known || std::uint64_t(groups.processes->most) <= user.rlim_cur)) {
    return fmt::format("; its control group allows {} processes and threads at a time ({})",
                       grouped_digits(groups.processes->most), groups.processes->file);
  }
  return limit_text(RLIMIT_NPROC, "; ulimit -u allows this user {} processes and threads at a time",
                    1);
}

}  // namespace

std::string limit_behind(const std::exception& error, const ControlGroupLimits& groups) {
  const std::string_view message = error.what();
  if (says(message, EMFILE)) {
    return limit_text(RLIMIT_NOFILE, "; ulimit -n allows this process {} open files", 1);
  }
  std::string addresses =
      limit_text(RLIMIT_AS, "; ulimit -v allows this process {} KB of addresses", 1024);
  if (says(message, EAGAIN)) {
    // A thread needs addresses for its stack; and ulimit -u always has a number, so it is named
    // only if ulimit -v has none.
    return addresses.empty() ? process_limit_text(groups) : addresses;
  }
  if (says(message, EFBIG)) {
    return limit_text(RLIMIT_FSIZE, "; ulimit -f allows this process files of {} KB", 1024);
  }
  const bool out_of_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return out_of_memory || says(message, ENOMEM) ? addresses : "";
}

void check_processes_allowed(const std::string& what, std::int64_t least,
                             const ControlGroupLimits& groups) {
  if (!groups.processes || groups.processes->used + least <= groups.processes->most) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("{} take at least {} processes and threads, and the control group allows "
                          "{} ({}), of which {} run: allow more of them, or start fewer tasks",
                          what, grouped_digits(least), grouped_digits(groups.processes->most),
                          groups.processes->file, grouped_digits(groups.processes->used)));
}

std::string MemoryKills::newly_killed() {
  const ControlGroupLimits groups = control_group_limits();
  if (groups.killed_for_memory <= std::exchange(seen_, groups.killed_for_memory)) return "";
  if (!groups.memory) return "; memory ran out: this machine has no more";
  return fmt::format("; memory ran out: its control group allows {} MB ({})",
                     grouped_digits(groups.memory->most / 1'000'000), groups.memory->file);
}

}  // namespace paceline
