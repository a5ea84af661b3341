#include "base/memory_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/text_file.h"

namespace paceline {
namespace {

TEST(MemoryFile, IsWrittenByAnotherProcessAgainAndAgain) {
  const MemoryFile file, other;
  EXPECT_NE(file.path(), other.path());
  EXPECT_EQ(file.text(), "");
  const std::string path = file.path();
  for (const char* text : {"a long text", "short"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      write_text_file("the text", path, text);
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(file.text(), text);
  }
  EXPECT_EQ(other.text(), "");
}

}  // namespace
}  // namespace paceline
