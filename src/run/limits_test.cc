#include "run/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// Sets a limit while it lives.
class Limited {
 public:
  Limited(__rlimit_resource resource, rlim_t most) : resource_(resource) {
    getrlimit(resource, &before_);
    rlimit limit = before_;
    limit.rlim_cur = most;
    EXPECT_EQ(setrlimit(resource, &limit), 0);
  }
  ~Limited() { setrlimit(resource_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  const __rlimit_resource resource_;
  rlimit before_ = {};
};

TEST(Limits, AreNamedWhereTheyAreBehindAnError) {
  const std::system_error threads(EAGAIN, std::generic_category());
  const Error files(ErrorCode::kUnavailable, "cannot open x: Too many open files");
  {
    const Limited limited(RLIMIT_NOFILE, 64);
    EXPECT_EQ(limit_behind(files), "; ulimit -n allows this process 64 open files");
  }
  {
    const Limited limited(RLIMIT_NPROC, 4096);
    EXPECT_EQ(limit_behind(threads),
              "; ulimit -u allows this user 4,096 processes and threads at a time");
  }
  const Error mapping(ErrorCode::kUnavailable, "no shared memory: mmap: Cannot allocate memory");
  EXPECT_EQ(limit_behind(mapping), "");
  EXPECT_EQ(limit_behind(Error(ErrorCode::kUsage, "--steps x: must be a number")), "");
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has more addresses than a limit may allow";
#endif
  const Limited limited(RLIMIT_AS, rlim_t{1} << 44);
  EXPECT_EQ(limit_behind(mapping),
            "; ulimit -v allows this process 17,179,869,184 KB of addresses");
  EXPECT_EQ(limit_behind(std::bad_alloc()), limit_behind(mapping));
  EXPECT_EQ(limit_behind(threads), limit_behind(mapping));
}

ControlGroupLimits groups_of(std::int64_t most, std::int64_t used) {
  return {.cores = {},
          .memory = {},
          .processes = GroupLimit{most, "/sys/fs/cgroup/job/pids.max", used},
          .killed_for_memory = 0};
}

TEST(Limits, OfProcessesTheSmallerOneIsNamed) {
  const std::system_error threads(EAGAIN, std::generic_category());
  const Limited limited(RLIMIT_NPROC, 4096);
  EXPECT_EQ(limit_behind(threads, groups_of(12, 12)),
            "; its control group allows 12 processes and threads at a time "
            "(/sys/fs/cgroup/job/pids.max)");
  EXPECT_EQ(limit_behind(threads, groups_of(100'000, 12)),
            "; ulimit -u allows this user 4,096 processes and threads at a time");
}

TEST(Limits, OfProcessesAreCountedBeforeAnyIsStarted) {
  check_processes_allowed("3 tasks", 18, groups_of(22, 4));
  check_processes_allowed("3 tasks", 18, {});
  EXPECT_EQ(error_of(ErrorCode::kFailedPrecondition,
                     [] { check_processes_allowed("3 tasks", 18, groups_of(12, 4)); }),
            "3 tasks take at least 18 processes and threads, and the control group allows 12 "
            "(/sys/fs/cgroup/job/pids.max), of which 4 run: allow more of them, or start fewer "
            "tasks");
}

}  // namespace
}  // namespace paceline
