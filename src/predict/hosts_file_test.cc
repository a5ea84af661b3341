#include "predict/hosts_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_file.h"
#include "base/text_file.h"
#include "paceline/error.h"
#include "predict/prediction_text.h"

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
  const auto [hosts, pairs] = parse_hosts(
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

TEST(HostsFileTest, HostsAndPairsAreReadAsTheyWereWritten) {
  DescribedHosts all;
  all.hosts = {{.name = "a \"b\"\\", .cores = 2, .link_bytes_per_s = 119e6},
               {.name = "c", .cores = 4, .link_bytes_per_s = 11.9e6, .receive_bytes_per_s = 59e6}};
  all.pairs = {{.link = {0, 1, 50e6, 20e6, 60e-6},
                .round_trip_s = 150e-6,
                .clock_ahead_s = -0.0031,
                .clock_doubt_s = 70e-6},
               {.link = {1, 0}, .missing = "host c\nwas \"lost\""}};
  const std::vector<std::string> comment = {"made\nby a test"};
  const std::string text = hosts_file_text(all, comment);
  EXPECT_THAT(text, HasSubstr("# made?by a test\n"));
  const DescribedHosts read = parse_hosts(text, "hosts.toml");
  ASSERT_EQ(read.hosts.size(), 2u);
  EXPECT_EQ(read.hosts[0].name, all.hosts[0].name);
  EXPECT_THAT(read.hosts[1].receive_bytes_per_s, DoubleNear(59e6, 1e5));
  ASSERT_EQ(read.pairs.size(), 2u);
  const HostPair& pair = read.pairs[0];
  EXPECT_EQ(pair.link.from, 0);
  EXPECT_EQ(pair.link.to, 1);
  EXPECT_THAT(pair.link.bytes_per_s, DoubleNear(50e6, 1e5));
  EXPECT_THAT(pair.link.stream_bytes_per_s, DoubleNear(20e6, 1e5));
  EXPECT_THAT(pair.link.latency_s, DoubleNear(60e-6, 1e-8));
  EXPECT_THAT(pair.round_trip_s, DoubleNear(150e-6, 1e-7));
  EXPECT_THAT(pair.clock_ahead_s, DoubleNear(-0.0031, 1e-6));
  EXPECT_THAT(pair.clock_doubt_s, DoubleNear(70e-6, 1e-8));
  EXPECT_EQ(read.pairs[1].missing, "host c?was \"lost\"");
  EXPECT_THAT(hosts_text(read.hosts), HasSubstr("a link of 0.1 Gbit/s out and 0.496 in"));
}

TEST(HostsFileTest, NamesWhatIsWrongWithAPair) {
  const std::string hosts = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n";
  const auto refusal = [&](const std::string& pair) { return refusal_of(hosts + pair); };
  EXPECT_THAT(refusal("[[pair]]\nfrom = \"a\"\n"), HasSubstr("needs from and to"));
  EXPECT_THAT(refusal("[[pair]]\nfrom = \"a\"\nto = \"a\"\n"), HasSubstr("needs from and to"));
  EXPECT_THAT(refusal("[[pair]]\nfrom = \"a\"\nto = \"bb\"\n"),
              HasSubstr("hosts.toml, line 7, column 1: no [[host]] has the name 'bb'"));
  EXPECT_THAT(refusal("[[pair]]\nfrom = 1\nto = \"b\"\n"), HasSubstr("no [[host]] has the name"));
  EXPECT_THAT(refusal("[[pair]]\nfrom = \"a\"\nto = \"b\"\ngbs = 1\n"),
              HasSubstr("'gbs' is nothing that a pair has"));
  EXPECT_THAT(refusal("[[pair]]\nfrom = \"a\"\nto = \"b\"\ngbps = 0\n"),
              HasSubstr("gbps must be a number from"));
  const std::string once = "[[pair]]\nfrom = \"a\"\nto = \"b\"\n";
  EXPECT_THAT(refusal(once + once), HasSubstr("the pair from 'a' to 'b' stands in line"));
  EXPECT_THAT(refusal_of(hosts + "[[host]]\nname = \"a\"\n" + once),
              HasSubstr("several hosts have the name 'a'"));
  EXPECT_THAT(refusal("[pair]\nfrom = \"a\"\n"), HasSubstr("each pair begins with [[pair]]"));
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
  const PredictedHost host{.name = "node", .cores = 2, .bytes_per_s = 57e9, .core_trip_s = 50e-9};
  const HostNumbers numbers = numbers_of(host);
  EXPECT_EQ(numbers.size(), 3u);
  const PredictedHost again = host_of(numbers);
  EXPECT_EQ(again.cores, 2);
  EXPECT_THAT(again.bytes_per_s, DoubleNear(57e9, 1));
  EXPECT_THAT(again.core_trip_s, DoubleNear(50e-9, 1e-15));
}

TEST(HostsFileTest, ARoofSaysWhatRanBesideItsMeasurement) {
  PredictedHost host{.name = "node", .cores = 2, .flops_per_s = 219e9, .bytes_per_s = 57e9};
  const MemoryFile file;
  EXPECT_THAT(roof_file_text(host), Not(HasSubstr("others")));
  host.others_share = 0.38;
  write_text_file("the roof", file.path(), roof_file_text(host));
  EXPECT_THAT(
      roof_file_text(host),
      HasSubstr("# Measured while other programs had the cores for 38% of the time: measure "
                "it again when they have ended\n"));
  const PredictedHost read = read_roof_file(file.path());
  EXPECT_THAT(read.others_share, DoubleNear(0.38, 1e-3));
  EXPECT_THAT(hosts_text({&read, 1}),
              HasSubstr(", measured while other programs had the cores for 38% of the time"));
}

TEST(HostsFileTest, ARoofIsReadAsItWasWritten) {
  const PredictedHost host{.name = "node",
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
                           .tcp_message_s = 8e-6,
                           .tcp_trip_s = 40e-6,
                           .shm_message_s = 4e-6,
                           .shm_trip_s = 20e-6,
                           .core_trip_s = 50e-9};
  const MemoryFile file;
  write_text_file("the roof", file.path(), roof_file_text(host));
  const PredictedHost read = read_roof_file(file.path());
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
  EXPECT_THAT(read.tcp_message_s, DoubleNear(8e-6, 1e-8));
  EXPECT_THAT(read.tcp_trip_s, DoubleNear(40e-6, 1e-8));
  EXPECT_THAT(read.shm_message_s, DoubleNear(4e-6, 1e-8));
  EXPECT_THAT(read.shm_trip_s, DoubleNear(20e-6, 1e-8));
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

constexpr const char* kDevice =
    "[[host]]\ncores = 4\ngflops = 200\ngbytes_per_s = 50\n[host.device]\nname = \"Some GPU\"\n"
    "gflops = 50000\ngbytes_per_s = 4000\nlaunch_us = 5\nupload_gbytes_per_s = 50\n"
    "download_gbytes_per_s = 40\n";

std::string device_with(const std::string& line, const std::string& other) {
  std::string text = kDevice;
  const std::size_t at = text.rfind(line);
  EXPECT_NE(at, text.npos) << line;
  return text.replace(at, line.size(), other);
}

TEST(HostsFileTest, AHostHasTheRoofOfItsDevices) {
  const auto hosts = parse_hosts(std::string(kDevice) + "[[host]]\ncores = 2\n", "f").hosts;
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_FALSE(hosts[1].device.is_known());
  const DeviceRoof& device = hosts[0].device;
  EXPECT_EQ(device.name, "Some GPU");
  EXPECT_DOUBLE_EQ(device.flops_per_s, 50e12);
  EXPECT_DOUBLE_EQ(device.bytes_per_s, 4e12);
  EXPECT_DOUBLE_EQ(device.launch_s, 5e-6);
  EXPECT_DOUBLE_EQ(device.upload_bytes_per_s, 50e9);
  EXPECT_DOUBLE_EQ(device.download_bytes_per_s, 40e9);
}

TEST(HostsFileTest, TheRoofOfADeviceIsReadAsItWasWritten) {
  const MemoryFile file;
  PredictedHost host = parse_hosts(kDevice, "f").hosts.front();
  host.device.name = "a \"GPU\"\\\x1b[31m";
  write_text_file("the roof", file.path(), roof_file_text(host));
  const DeviceRoof read = read_roof_file(file.path()).device;
  EXPECT_EQ(read.name, "a \"GPU\"\\?[31m");
  host.device.name = read.name;
  EXPECT_DOUBLE_EQ(read.launch_s, host.device.launch_s);
  EXPECT_DOUBLE_EQ(read.flops_per_s, host.device.flops_per_s);
  EXPECT_DOUBLE_EQ(read.download_bytes_per_s, host.device.download_bytes_per_s);
}

TEST(HostsFileTest, NamesTheFieldOfADeviceThatIsWrongOrMissing) {
  for (const std::string field :
       {"gflops", "gbytes_per_s", "launch_us", "upload_gbytes_per_s", "download_gbytes_per_s"}) {
    const std::string text = kDevice;
    const std::size_t begin = text.rfind("\n" + field + " = ") + 1;
    const std::string line = text.substr(begin, text.find('\n', begin) + 1 - begin);
    EXPECT_THAT(refusal_of(device_with(line, "")),
                HasSubstr(": " + field + " is missing in [host.device]"));
    for (const char* value : {"-1", "0", "nan", "inf", "-inf", "1e308", "\"5\"", "[5]", "{}"}) {
      EXPECT_THAT(refusal_of(device_with(line, field + " = " + value + "\n")),
                  HasSubstr(": " + field + " must be a number from "))
          << value;
    }
  }
  const std::string name = "name = \"Some GPU\"\n";
  EXPECT_THAT(refusal_of(device_with(name, "")), HasSubstr("name is missing in [host.device]"));
  EXPECT_THAT(refusal_of(device_with(name, "name = 5\n")), HasSubstr("name must be a text"));
  EXPECT_THAT(refusal_of(device_with(name, "name = \"" + std::string(1 << 20, 'x') + "\"\n")),
              HasSubstr("name must be a text of at most 256 bytes"));
  EXPECT_THAT(refusal_of(device_with(name, name + "gflop = 5\n")),
              HasSubstr("'gflop' is nothing that a device has; did you mean 'gflops'?"));
}

TEST(HostsFileTest, ADeviceIsASectionOfItsHost) {
  for (const char* text : {"[[host]]\ndevice = 3\n", "[[host]]\n[[host.device]]\nname = \"x\"\n"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("described behind a line [host.device]"));
  }
  EXPECT_THAT(refusal_of("[device]\nname = \"x\"\n[[host]]\n"),
              HasSubstr("'device' must stand behind a line [[host]]"));
}

}  // namespace
}  // namespace paceline
