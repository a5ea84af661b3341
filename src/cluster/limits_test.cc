#include "cluster/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <system_error>

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
  const Limited limited(RLIMIT_AS, rlim_t{1} << 44);
  EXPECT_EQ(limit_behind(mapping),
            "; ulimit -v allows this process 17,179,869,184 KB of addresses");
  EXPECT_EQ(limit_behind(std::bad_alloc()), limit_behind(mapping));
  EXPECT_EQ(limit_behind(threads), limit_behind(mapping));
}

}  // namespace
}  // namespace paceline
