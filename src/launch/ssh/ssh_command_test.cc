#include "launch/ssh/ssh_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

SshOptions with_paceline(const std::string& path) {
  SshOptions options;
  options.paceline = path;
  return options;
}

TEST(SshCommand, AsksNothingAndNamesTheAgentToAnyShell) {
  SshOptions options = with_paceline("/opt/it's $HOME/paceline");
  options.program = "ssh -p 2222";
  options.silence = std::chrono::seconds(15);
  const std::vector<std::string> words = ssh_words(options, {"me", "b"});
  EXPECT_THAT(words, Contains("exec ssh -p 2222 \"$@\""));
  EXPECT_THAT(words, Contains("-oBatchMode=yes"));
  EXPECT_THAT(words, Contains("-oServerAliveInterval=5"));
  ASSERT_GE(words.size(), 2U);
  EXPECT_EQ(words[words.size() - 2], "me@b");
  EXPECT_EQ(words.back(), R"(exec '/opt/it'\''s $HOME/paceline' launch --agent)");
}

TEST(SshCommand, FailuresHaveSshsWordsAndARemedy) {
  const SshOptions options = with_paceline("/usr/bin/paceline");
  const auto why = [&](const std::string& written, int status) {
    return why_not_reached(options, {"me", "b"}, written, status);
  };
  EXPECT_THAT(why("a banner\r\nssh: connect to host b port 22: Connection refused\r\n", 255),
              AllOf(StartsWith("host b cannot be reached: ssh: connect to host b port 22: "
                               "Connection refused: "),
                    HasSubstr("--ssh 'ssh -p PORT'")));
  EXPECT_THAT(why("me@b: Permission denied (publickey).\r\n", 255),
              HasSubstr("Permission denied (publickey): ssh-copy-id me@b"));
  EXPECT_THAT(why("No key is known.\nHost key verification failed.\n", 255),
              HasSubstr("Host key verification failed: connect once by hand (ssh me@b)"));
  EXPECT_THAT(why("REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.\n", 255),
              HasSubstr("ssh-keygen -R b"));
  EXPECT_THAT(why("ssh: Could not resolve hostname b: Name or service not known\n", 255),
              HasSubstr("all hosts know"));
  EXPECT_THAT(why("bash: line 1: /usr/bin/paceline: No such file or directory\n", 127),
              HasSubstr("install this version of paceline there, too, as /usr/bin/paceline"));
  EXPECT_THAT(why("sh: 1: exec: nossh: not found\n", 127), HasSubstr("--ssh names a program"));
  EXPECT_THAT(why("", 255), EndsWith("it said nothing: check that ssh me@b true works and asks "
                                     "nothing"));
  EXPECT_THAT(why("\x1b[2J evil\n", 255), HasSubstr("?[2J evil"));
}

}  // namespace
}  // namespace paceline
