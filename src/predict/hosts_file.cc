#include "predict/hosts_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <system_error>

#include "base/nearest.h"
#include "base/plain_text.h"
#include "paceline/error.h"
#include "predict/roof.h"
#include "run/config/config_value.h"
#include "run/network_rate.h"

namespace paceline {
namespace {

// Limits for a file, and for one host.
constexpr int kMostHostsOfFile = 100'000, kMostDevices = 1000;
constexpr double kMostCoresOfHost = 100'000;
constexpr std::size_t kMostNameBytes = 256;  // of a device's name

/// The text to read, and the flag that named it.
struct HostsText {
  const char* flag;
  std::string_view text;
  const std::string& source;
};

[[noreturn]] void refuse_host(const HostsText& from, const ConfigValue& at,
                              const std::string& why) {
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: {}: {}", from.flag, place_of(from.source, at.line, at.column), why));
}

double number_of(const HostsText& from, const ConfigValue& value, double least, double most) {
  const double number = std::atof(value.text.c_str());
  const bool fits = number >= least && number <= most;  // false for NaN
  if (value.kind != ConfigValue::Kind::kNumber || !fits) {
    refuse_host(from, value,
                fmt::format("{} must be a number from {} to {}", value.key, least, most));
  }
  return number;
}

int count_of(const HostsText& from, const ConfigValue& value, int least, int most) {
  const double number = number_of(from, value, least, most);
  if (number != std::floor(number)) {
    refuse_host(from, value, fmt::format("{} must be a whole number", value.key));
  }
  return int(number);
}

/// A number of a host, and its name in the file.
struct HostNumber {
  std::string_view name;
  double PredictedHost::*into;
  double scale, least, most = 1e9;
};
constexpr HostNumber kHostNumbers[] = {
    {"cores", &PredictedHost::cores, 1, 1, kMostCoresOfHost},
    {"gflops", &PredictedHost::flops_per_s, 1e9, 1e-3},
    {"gbytes_per_s", &PredictedHost::bytes_per_s, 1e9, 1e-3},
    {"thread_gbytes_per_s", &PredictedHost::thread_bytes_per_s, 1e9, 1e-3},
    {"rule_gbytes_per_s", &PredictedHost::rule_bytes_per_s, 1e9, 0},
    {"thread_rule_gbytes_per_s", &PredictedHost::thread_rule_bytes_per_s, 1e9, 0},
    {"cached_rule_gbytes_per_s", &PredictedHost::cached_rule_bytes_per_s, 1e9, 0},
    {"tcp_send_gbytes_per_s", &PredictedHost::tcp_send_bytes_per_s, 1e9, 0},
    {"tcp_receive_gbytes_per_s", &PredictedHost::tcp_receive_bytes_per_s, 1e9, 0},
    {"core_tcp_send_gbytes_per_s", &PredictedHost::core_tcp_send_bytes_per_s, 1e9, 0},
    {"core_tcp_receive_gbytes_per_s", &PredictedHost::core_tcp_receive_bytes_per_s, 1e9, 0},
    {"cipher_gbytes_per_s", &PredictedHost::cipher_bytes_per_s, 1e9, 0},
    {"tcp_message_us", &PredictedHost::tcp_message_s, 1e-6, 0},
    {"tcp_trip_us", &PredictedHost::tcp_trip_s, 1e-6, 0},
    {"shm_message_us", &PredictedHost::shm_message_s, 1e-6, 0},
    {"shm_trip_us", &PredictedHost::shm_trip_s, 1e-6, 0},
    {"core_trip_ns", &PredictedHost::core_trip_s, 1e-9, 0},
    {"others_percent", &PredictedHost::others_share, 1e-2, 0, 100},
    {"gbps", &PredictedHost::link_bytes_per_s, kPayloadOfGigabit, 1e-4},
    {"receive_gbps", &PredictedHost::receive_bytes_per_s, kPayloadOfGigabit, 1e-4},
    {"latency_us", &PredictedHost::latency_s, 1e-6, 0},
};

/// A number of a host's devices.
struct DeviceNumber {
  std::string_view name;
  double DeviceRoof::*into;
  double scale, least, most = 1e9;
};
constexpr DeviceNumber kDeviceNumbers[] = {
    {"gflops", &DeviceRoof::flops_per_s, 1e9, 1e-3},
    {"gbytes_per_s", &DeviceRoof::bytes_per_s, 1e9, 1e-3},
    {"launch_us", &DeviceRoof::launch_s, 1e-6, 1e-3, 1e6},
    {"upload_gbytes_per_s", &DeviceRoof::upload_bytes_per_s, 1e9, 1e-3},
    {"download_gbytes_per_s", &DeviceRoof::download_bytes_per_s, 1e9, 1e-3},
};

/// A number of a pair.
struct PairNumber {
  std::string_view name;
  double& (*into)(HostPair& pair);
  double scale, least, most = 1e9;
};
constexpr PairNumber kPairNumbers[] = {
    {"gbps", [](HostPair& it) -> double& { return it.link.bytes_per_s; }, kPayloadOfGigabit, 1e-6},
    {"stream_gbps", [](HostPair& it) -> double& { return it.link.stream_bytes_per_s; },
     kPayloadOfGigabit, 1e-6},
    {"latency_us", [](HostPair& it) -> double& { return it.link.latency_s; }, 1e-6, 0},
    {"round_trip_us", [](HostPair& it) -> double& { return it.round_trip_s; }, 1e-6, 0},
    {"clock_ahead_ms", [](HostPair& it) -> double& { return it.clock_ahead_s; }, 1e-3, -1e15, 1e15},
    {"clock_doubt_ms", [](HostPair& it) -> double& { return it.clock_doubt_s; }, 1e-3, 0},
};

/// Returns the keys that a table may have: those in `keys`, and the names of the numbers.
std::vector<std::string_view> known_keys(std::vector<std::string_view> keys, const auto& numbers) {
  for (const auto& each : numbers) keys.push_back(each.name);
  return keys;
}

DeviceRoof device_of_table(const HostsText& from, const ConfigValue& table) {
  if (table.kind != ConfigValue::Kind::kTable) {
    refuse_host(from, table, "a host's devices are described behind a line [host.device]");
  }
  DeviceRoof device;
  for (const ConfigValue& item : table.items) {
    const auto* const known = std::ranges::find(kDeviceNumbers, item.key, &DeviceNumber::name);
    if (known != std::end(kDeviceNumbers)) {
      device.*(known->into) = number_of(from, item, known->least, known->most) * known->scale;
    } else if (item.key == "name") {
      if (item.kind != ConfigValue::Kind::kText || item.text.size() > kMostNameBytes) {
        refuse_host(from, item,
                    fmt::format("name must be a text of at most {} bytes", kMostNameBytes));
      }
      device.name = plain_text(item.text);
    } else {
      refuse_host(from, item,
                  fmt::format("'{}' is nothing that a device has{}", item.key,
                              did_you_mean(item.key, known_keys({"name"}, kDeviceNumbers))));
    }
  }
  for (const DeviceNumber& each : kDeviceNumbers) {
    if (device.*(each.into) > 0) continue;
    refuse_host(from, table, fmt::format("{} is missing in [host.device]", each.name));
  }
  if (device.name.empty()) refuse_host(from, table, "name is missing in [host.device]");
  return device;
}

PredictedHost host_of_table(const HostsText& from, const ConfigValue& table, int& count) {
  PredictedHost host;
  for (const ConfigValue& item : table.items) {
    const auto* const known = std::ranges::find(kHostNumbers, item.key, &HostNumber::name);
    if (known != std::end(kHostNumbers)) {
      host.*(known->into) = number_of(from, item, known->least, known->most) * known->scale;
    } else if (item.key == "name") {
      host.name = item.text;
    } else if (item.key == "device") {
      host.device = device_of_table(from, item);
    } else if (item.key == "devices") {
      host.devices = count_of(from, item, 0, kMostDevices);
    } else if (item.key == "count") {
      count = count_of(from, item, 1, kMostHostsOfFile);
    } else {
      refuse_host(
          from, item,
          fmt::format("'{}' is nothing that a host has{}", item.key,
                      did_you_mean(item.key, known_keys({"count", "name", "devices", "device"},
                                                        kHostNumbers))));
    }
  }
  return host;
}

std::string text_of_file(const char* flag, const std::string& path) {
  std::error_code unseen;
  const bool is_folder = std::filesystem::is_directory(path, unseen);
  std::ifstream file(path, std::ios::binary);
  if (!file || is_folder) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} {}: {}", flag, path, is_folder ? "is a folder" : "cannot be read"));
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

int named_host(const HostsText& from, const ConfigValue& value,
               std::span<const PredictedHost> hosts) {
  const auto found = std::ranges::find(hosts, value.text, &PredictedHost::name);
  if (value.kind != ConfigValue::Kind::kText || found == hosts.end()) {
    std::vector<std::string_view> names;
    for (const PredictedHost& host : hosts) names.push_back(host.name);
    refuse_host(from, value,
                fmt::format("no [[host]] has the name '{}'{}", value.text,
                            did_you_mean(value.text, names)));
  }
  if (std::find_if(found + 1, hosts.end(), [&](const PredictedHost& other) {
        return other.name == value.text;
      }) != hosts.end()) {
    refuse_host(
        from, value,
        fmt::format("several hosts have the name '{}', of which a [[pair]] names one", value.text));
  }
  return int(found - hosts.begin());
}

HostPair pair_of_table(const HostsText& from, const ConfigValue& table,
                       std::span<const PredictedHost> hosts) {
  HostPair pair;
  pair.link.from = pair.link.to = -1;
  for (const ConfigValue& item : table.items) {
    const auto* const known = std::ranges::find(kPairNumbers, item.key, &PairNumber::name);
    if (known != std::end(kPairNumbers)) {
      known->into(pair) = number_of(from, item, known->least, known->most) * known->scale;
    } else if (item.key == "from" || item.key == "to") {
      (item.key == "from" ? pair.link.from : pair.link.to) = named_host(from, item, hosts);
    } else if (item.key == "missing") {
      pair.missing = plain_text(item.text);
    } else {
      refuse_host(
          from, item,
          fmt::format("'{}' is nothing that a pair has{}", item.key,
                      did_you_mean(item.key, known_keys({"from", "to", "missing"}, kPairNumbers))));
    }
  }
  if (pair.link.from < 0 || pair.link.to < 0 || pair.link.from == pair.link.to)
    refuse_host(from, table, "a [[pair]] needs from and to: the names of two hosts");
  return pair;
}

/// Returns the tables under lines [[key]].
std::span<const ConfigValue> tables_of(const HostsText& from, const ConfigValue& all,
                                       const std::string& key) {
  const ConfigValue* const list = all.find(key);
  if (list == nullptr) return {};
  for (const ConfigValue& table : list->items) {
    if (table.kind == ConfigValue::Kind::kTable) continue;
    refuse_host(from, *list,
                fmt::format("each {0} begins with [[{0}]], in two pairs of brackets", key));
  }
  return list->items;
}

std::vector<HostPair> pairs_of(const HostsText& from, const ConfigValue& all,
                               std::span<const PredictedHost> hosts) {
  std::vector<HostPair> pairs;
  std::map<std::pair<int, int>, int> lines;
  for (const ConfigValue& table : tables_of(from, all, "pair")) {
    pairs.push_back(pair_of_table(from, table, hosts));
    const SimulatedPair& link = pairs.back().link;
    const auto [known, is_new] = lines.try_emplace({link.from, link.to}, table.line);
    if (is_new) continue;
    refuse_host(from, table,
                fmt::format("the pair from '{}' to '{}' stands in line {}, too",
                            hosts[std::size_t(link.from)].name, hosts[std::size_t(link.to)].name,
                            known->second));
  }
  return pairs;
}

DescribedHosts hosts_of(const HostsText& from) {
  const ConfigValue all = parse_toml(from.text, from.source);
  for (const ConfigValue& item : all.items) {
    if (item.key == "host" || item.key == "pair") continue;
    refuse_host(from, item, fmt::format("'{}' must stand behind a line [[host]]", item.key));
  }
  const std::span<const ConfigValue> tables = tables_of(from, all, "host");
  if (tables.empty()) refuse_host(from, all, "there is no [[host]]");
  std::vector<PredictedHost> hosts;
  for (const ConfigValue& table : tables) {
    int count = 1;
    PredictedHost host = host_of_table(from, table, count);
    const std::string name = host.name.empty() ? "host" : host.name;
    if (hosts.size() + std::size_t(count) > kMostHostsOfFile) {
      refuse_host(from, table, fmt::format("these are more than {} hosts", kMostHostsOfFile));
    }
    for (int i = 0; i < count; ++i) {
      host.machine = int(hosts.size());
      host.name = count == 1 && !host.name.empty() ? name : fmt::format("{} {}", name, i);
      hosts.push_back(host);
    }
  }
  std::vector<HostPair> pairs = pairs_of(from, all, hosts);
  return {std::move(hosts), std::move(pairs)};
}

/// Returns the text as a quoted TOML string, whatever it contains.
std::string in_quotes(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : plain_text(text)) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "\"";
}

std::string device_lines(const DeviceRoof& device) {
  std::string text = fmt::format("[host.device]\nname = {}\n", in_quotes(device.name));
  for (const DeviceNumber& each : kDeviceNumbers) {
    text += fmt::format("{} = {:.4g}\n", each.name, device.*(each.into) / each.scale);
  }
  return text;
}

std::string host_lines(const PredictedHost& host) {
  std::string text = fmt::format("[[host]]\nname = {}\n", in_quotes(host.name));
  for (const auto& [name, number] : numbers_of(host)) {
    text += fmt::format("{} = {:.4g}\n", name, number);
  }
  return host.device.is_known() ? text + device_lines(host.device) : text;
}

std::string pair_lines(HostPair pair, std::span<const PredictedHost> hosts) {
  const auto name = [&](int host) { return in_quotes(hosts[std::size_t(host)].name); };
  std::string text =
      fmt::format("[[pair]]\nfrom = {}\nto = {}\n", name(pair.link.from), name(pair.link.to));
  if (!pair.missing.empty()) return text + fmt::format("missing = {}\n", in_quotes(pair.missing));
  for (const PairNumber& each : kPairNumbers) {
    const double number = each.into(pair);
    if (number != 0) text += fmt::format("{} = {:.4g}\n", each.name, number / each.scale);
  }
  return text;
}

}  // namespace

DescribedHosts parse_hosts(std::string_view text, const std::string& source) {
  return hosts_of({"--hosts", text, source});
}

DescribedHosts read_hosts(const std::string& path) {
  return parse_hosts(text_of_file("--hosts", path), path);
}

std::string hosts_file_text(const DescribedHosts& all, std::span<const std::string> comment) {
  std::string text;
  for (const std::string& line : comment) text += fmt::format("# {}\n", plain_text(line));
  for (const PredictedHost& host : all.hosts) text += "\n" + host_lines(host);
  for (const HostPair& pair : all.pairs) text += "\n" + pair_lines(pair, all.hosts);
  return text;
}

HostNumbers numbers_of(const PredictedHost& host) {
  HostNumbers numbers;
  for (const HostNumber& each : kHostNumbers) {
    if (host.*(each.into) > 0) numbers.emplace_back(each.name, host.*(each.into) / each.scale);
  }
  return numbers;
}

PredictedHost host_of(const HostNumbers& numbers) {
  PredictedHost host{.name = "this machine"};
  for (const auto& [name, number] : numbers) {
    const auto* const known = std::ranges::find(kHostNumbers, name, &HostNumber::name);
    if (known != std::end(kHostNumbers)) host.*(known->into) = number * known->scale;
  }
  return host;
}

std::string beside_others(double share) {
  return fmt::format("while other programs had the cores for {:.0f}% of the time", 100 * share);
}

std::string roof_file_text(const PredictedHost& host) {
  std::string text =
      "# The roof of a host, for --roof and for [[host]] in --hosts (paceline predict)\n";
  if (is_beside_others(host.others_share)) {
    text += fmt::format("# Measured {}: measure it again when they have ended\n",
                        beside_others(host.others_share));
  }
  return text + host_lines(host);
}

PredictedHost read_roof_file(const std::string& path) {
  const std::string text = text_of_file("--roof", path);
  PredictedHost host = hosts_of({"--roof", text, path}).hosts.front();
  if (host.flops_per_s > 0 && host.bytes_per_s > 0) return host;
  throw Error(ErrorCode::kUsage,
              fmt::format("--roof {}: gflops or gbytes_per_s is missing; paceline roof --out FILE "
                          "writes such a file",
                          path));
}

}  // namespace paceline
