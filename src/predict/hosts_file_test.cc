#include "predict/hosts_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_file.h"
#include "base/text_file.h"
#include "paceline/error.h"
#include "predict/forecast_text.h"

namespace paceline {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal_of(const std::string& text) {
  try {
    parse_hosts(text, "hosts.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "it was taken";
}

TEST(HostsFileTest, ReadsHostsThatAreAlike) {
  const auto hosts = parse_hosts(
      "[[host]]\ncount = 4\ncores = 32\ngflops = 2000\ngbytes_per_s = 180\ndevices = 2\n"
      "gbps = 1\nlatency_us = 30\n[[host]]\nname = \"store\"\ncores = 8\ndevices = 0\n",
      "hosts.toml");
  ASSERT_EQ(hosts.size(), 5u);
  EXPECT_EQ(hosts[3].name, "host 3");
  EXPECT_EQ(hosts[3].machine, 3);
  EXPECT_EQ(hosts[3].devices, 2);
  EXPECT_THAT(hosts[3].link_bytes_per_s, DoubleNear(118.9e6, 1));
  EXPECT_THAT(hosts[3].latency_s, DoubleNear(30e-6, 1e-9));
  EXPECT_EQ(hosts[4].name, "store");
  EXPECT_EQ(hosts[4].link_bytes_per_s, 0);
}

TEST(HostsFileTest, RefusesMoreThanAnyHostHas) {
  EXPECT_THAT(refusal_of("[[host]]\ndevices = 1e12\n"), HasSubstr("devices must be a number from"));
  EXPECT_THAT(refusal_of("[[host]]\ncores = 1e15\n"), HasSubstr("from 1 to 100000"));
  EXPECT_THAT(refusal_of("[[host]]\ncount = 200000\n"), HasSubstr("count must be a number from"));
  EXPECT_THAT(refusal_of("[[host]]\ncount = 100000\n[[host]]\n"),
              HasSubstr("these are more than 100000 hosts"));
}

TEST(HostsFileTest, NamesThePlaceOfWhatIsWrong) {
  EXPECT_THAT(refusal_of(""), HasSubstr("no [[host]]"));
  EXPECT_THAT(refusal_of("[[host]]\ncore = 2\n"), HasSubstr("hosts.toml, line 2"));
  EXPECT_THAT(refusal_of("[[host]]\ncore = 2\n"), HasSubstr("cores"));
  EXPECT_THAT(refusal_of("[[host]]\ncores = \"two\"\n"), HasSubstr("must be a number"));
  EXPECT_THAT(refusal_of("[[host]]\ngbps = -1\n"), HasSubstr("must be a number"));
  EXPECT_THAT(refusal_of("[[host]]\ncores = nan\n"), HasSubstr("must be a number"));
  EXPECT_THAT(refusal_of("[host]\ncores = 2\n"), HasSubstr("two pairs of brackets"));
  EXPECT_THAT(refusal_of("cores = 2\n[[host]]\n"), HasSubstr("must stand behind a line [[host]]"));
  EXPECT_THAT(refusal_of("[[host]]\ncount = 2.7\n"), HasSubstr("count must be a whole number"));
}

TEST(HostsFileTest, AFolderIsNoFile) {
  try {
    read_hosts("/tmp");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--hosts /tmp: is a folder"));
  }
}

TEST(HostsFileTest, AHostIsWhatItsNumbersSay) {
  const ForecastHost host{.name = "node", .cores = 2, .bytes_per_s = 57e9, .core_trip_s = 50e-9};
  const HostNumbers numbers = numbers_of(host);
  EXPECT_EQ(numbers.size(), 3u);
  const ForecastHost again = host_of(numbers);
  EXPECT_EQ(again.cores, 2);
  EXPECT_THAT(again.bytes_per_s, DoubleNear(57e9, 1));
  EXPECT_THAT(again.core_trip_s, DoubleNear(50e-9, 1e-15));
}

TEST(HostsFileTest, ARoofSaysWhatRanBesideItsMeasurement) {
  ForecastHost host{.name = "node", .cores = 2, .flops_per_s = 219e9, .bytes_per_s = 57e9};
  const MemoryFile file;
  EXPECT_THAT(roof_file_text(host), Not(HasSubstr("others")));
  host.others_share = 0.38;
  write_text_file("the roof", file.path(), roof_file_text(host));
  EXPECT_THAT(
      roof_file_text(host),
      HasSubstr("# Measured while other programs had the cores for 38% of the time: measure "
                "it again when they have ended\n"));
  const ForecastHost read = read_roof_file(file.path());
  EXPECT_THAT(read.others_share, DoubleNear(0.38, 1e-3));
  EXPECT_THAT(hosts_text({&read, 1}),
              HasSubstr(", measured while other programs had the cores for 38% of the time"));
}

TEST(HostsFileTest, ARoofIsReadAsItWasWritten) {
  const ForecastHost host{.name = "node",
                          .cores = 2,
                          .flops_per_s = 219e9,
                          .bytes_per_s = 57e9,
                          .thread_bytes_per_s = 40e9,
                          .rule_bytes_per_s = 50e9,
                          .thread_rule_bytes_per_s = 30e9,
                          .cached_rule_bytes_per_s = 90e9,
                          .tcp_send_bytes_per_s = 5e9,
                          .tcp_receive_bytes_per_s = 4e9,
                          .core_tcp_send_bytes_per_s = 7e9,
                          .core_tcp_receive_bytes_per_s = 8e9,
                          .cipher_bytes_per_s = 6e9,
                          .core_trip_s = 50e-9};
  const MemoryFile file;
  write_text_file("the roof", file.path(), roof_file_text(host));
  const ForecastHost read = read_roof_file(file.path());
  EXPECT_EQ(read.cores, 2);
  EXPECT_THAT(read.flops_per_s, DoubleNear(219e9, 1e6));
  EXPECT_THAT(read.bytes_per_s, DoubleNear(57e9, 1e6));
  EXPECT_THAT(read.thread_bytes_per_s, DoubleNear(40e9, 1e6));
  EXPECT_THAT(read.rule_bytes_per_s, DoubleNear(50e9, 1e6));
  EXPECT_THAT(read.thread_rule_bytes_per_s, DoubleNear(30e9, 1e6));
  EXPECT_THAT(read.cached_rule_bytes_per_s, DoubleNear(90e9, 1e6));
  EXPECT_THAT(read.tcp_send_bytes_per_s, DoubleNear(5e9, 1e6));
  EXPECT_THAT(read.tcp_receive_bytes_per_s, DoubleNear(4e9, 1e6));
  EXPECT_THAT(read.core_tcp_send_bytes_per_s, DoubleNear(7e9, 1e6));
  EXPECT_THAT(read.core_tcp_receive_bytes_per_s, DoubleNear(8e9, 1e6));
  EXPECT_THAT(read.cipher_bytes_per_s, DoubleNear(6e9, 1e6));
  EXPECT_THAT(read.core_trip_s, DoubleNear(50e-9, 1e-10));
}

TEST(HostsFileTest, ARoofWithoutARateIsRefusedByTheNameOfItsFlag) {
  const MemoryFile file;
  for (const char* text : {"[[host]]\ncores = 2\n", "[[host]]\ncores = 0\n"}) {
    write_text_file("the roof", file.path(), text);
    try {
      read_roof_file(file.path());
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("--roof"));
    }
  }
}

}  // namespace
}  // namespace paceline
