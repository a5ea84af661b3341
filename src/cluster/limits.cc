#include "cluster/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>

#include "base/grouped_digits.h"

namespace paceline {
namespace {

// Errors of the system reach this place as the system's text.
bool says(std::string_view message, int reason) {
  return message.find(std::generic_category().message(reason)) != message.npos;
}

std::string limit_text(__rlimit_resource resource, const char* format, std::uint64_t unit) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(fmt::runtime(format), grouped_digits(std::int64_t(limit.rlim_cur / unit)));
}

}  // namespace

std::string limit_behind(const std::exception& error) {
  const std::string_view message = error.what();
  if (says(message, EMFILE)) {
    return limit_text(RLIMIT_NOFILE, "; ulimit -n allows this process {} open files", 1);
  }
  std::string addresses =
      limit_text(RLIMIT_AS, "; ulimit -v allows this process {} KB of addresses", 1024);
  if (says(message, EAGAIN)) {
    // A thread needs addresses for its stack, and ulimit -u is never without a number.
    if (!addresses.empty()) return addresses;
    return limit_text(RLIMIT_NPROC,
                      "; ulimit -u allows this user {} processes and threads at a time", 1);
  }
  if (says(message, EFBIG)) {
    return limit_text(RLIMIT_FSIZE, "; ulimit -f allows this process files of {} KB", 1024);
  }
  const bool out_of_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return out_of_memory || says(message, ENOMEM) ? addresses : "";
}

}  // namespace paceline
