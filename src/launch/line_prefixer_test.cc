#include "launch/line_prefixer.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace paceline {
namespace {

class Output {
 public:
  Output() { EXPECT_EQ(pipe(ends_), 0); }
  ~Output() { close(ends_[0]); }
  int fd() const { return ends_[1]; }
  /// Returns all that was written; nothing can be written after this call.
  std::string text() {
    close(ends_[1]);
    std::string all;
    char chunk[256];
    for (ssize_t got; (got = read(ends_[0], chunk, sizeof chunk)) > 0;)
      all.append(chunk, std::size_t(got));
    return all;
  }

 private:
  int ends_[2];
};

TEST(LinePrefixer, PutsLinesTogetherFromChunks) {
  Output output;
  LinePrefixer lines("worker:1 | ", output.fd());
  lines.add("one\ntw");
  lines.add("o");
  lines.add("\n\nthr");
  lines.add("ee");
  lines.finish();
  lines.finish();
  EXPECT_EQ(output.text(), "worker:1 | one\nworker:1 | two\nworker:1 | \nworker:1 | three\n");
}

TEST(LinePrefixer, TwoTasksDoNotTearEachOthersLines) {
  Output output;
  LinePrefixer a("a | ", output.fd()), b("b | ", output.fd());
  a.add("first half, ");
  b.add("whole\n");
  a.add("second half\n");
  EXPECT_EQ(output.text(), "b | whole\na | first half, second half\n");
}

}  // namespace
}  // namespace paceline
