#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/address.h"
#include "base/memory_file.h"
#include "base/plain_text.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "base/text_file.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/security_reader.h"
#include "launch/job_security.h"
#include "net/poll/poll_until.h"
#include "paceline/error.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "probe/probe_meaning.h"
#include "probe/probe_server.h"
#include "probe/prober.h"
#include "run/interrupt.h"
#include "run/report/circumstances.h"
#include "tools/predicted_model.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "tools/train_flags.h"

namespace paceline {
namespace {

constexpr std::uint16_t kUsualPort = 2220;
constexpr double kUsualSeconds = 2, kLeastSeconds = 0.2, kMostSeconds = 60;
constexpr std::size_t kMostHosts = 100;

CommandLine probe_line() {
  Flag host{"HOST", "HOST[:PORT]",
            "A host on which `paceline probe` serves (default port: 2220); none: serve here",
            "What is measured"};
  host.optional = host.repeats = true;
  CommandLine line{
      "paceline probe",
      "Measures the network between hosts, and what each host can do. Without a HOST it serves: it "
      "lets this host be measured, until Ctrl-C, by whoever has the key. With HOSTs it measures "
      "this host and all of them, each two in both ways, one after the other so that nothing "
      "disturbs it: the rate of one stream and of four, the time of a small message to and fro, "
      "and "
      "how far the clocks are apart. It prints a table and writes a file of hosts, by which "
      "`paceline predict MODEL --hosts hosts.toml` predicts without any figure by hand.",
      R"(Examples:
  paceline key
      makes the key, and says how to copy it to the other hosts
  paceline probe
      on each of the other hosts: serves until Ctrl-C
  paceline probe node1 node2 node3
      on this host: measures all four, and writes hosts.toml
  paceline probe node1 node2 --remote-only --seconds 5 --out rack7.toml
      measures node1 and node2 alone, each rate for longer
  paceline probe node1 node2 --for resnet --batch 64
      says at its end what this network means for that training

A rate is what a job's links carry: of frames with checksums, encrypted between hosts.
Exit status: 0 if all was measured, 1 if not, 2 if used wrongly.)",
      {host,
       {"--listen", "HOST:PORT",
        "The address to serve at (default 0.0.0.0:2220, every address of this host)", "Serving"},
       {"--out", "FILE",
        "The file of hosts to write (default hosts.toml, which is not written over)",
        "What is measured"},
       {"--partial", "",
        "Write the file also when not all could be measured; it says what is missing and why",
        "What is measured"},
       {"--seconds", "S", "For how long each of the four rates of a pair is measured (default 2)",
        "What is measured"},
       {"--remote-only", "", "Leave this host out, where it only asks and will train nothing",
        "What is measured"},
       {"--for", "MODEL",
        "Say what the network means for a training: the model, behind which all further words are "
        "flags of `paceline predict MODEL`. It stands last",
        "What is measured"}}};
  for (const Flag& flag : security_flags("Security of links")) line.flags.push_back(flag);
  for (const models::Model* model : models::all_models()) {
    for (Flag& flag : line.flags) {
      if (flag.name == "--for") flag.completions.emplace_back(model->name());
    }
  }
  return line;
}

/// The words before --for, and those after it.
struct ProbeWords {
  Arguments own, prediction;
};
ProbeWords split(const Arguments& arguments) {
  constexpr std::string_view kFor = "--for";
  const auto at = std::ranges::find_if(arguments, [&](const std::string& word) {
    return word == kFor || word.starts_with("--for=");
  });
  ProbeWords words{{arguments.begin(), at}, {}};
  if (at == arguments.end()) return words;
  if (*at != kFor) words.prediction.push_back(at->substr(kFor.size() + 1));
  words.prediction.insert(words.prediction.end(), at + 1, arguments.end());
  if (words.prediction.empty() || words.prediction.front().starts_with('-'))
    refuse_flags("--for needs a model, behind which the flags of `paceline predict MODEL` stand");
  return words;
}

void print_progress(const std::string& line) {
  print_text(stderr, plain_lines("paceline probe: " + line + "\n"));
}

int serve_probes(const FlagValues& values) {
  for (const char* const flag : {"--out", "--partial", "--seconds", "--remote-only"}) {
    if (values.given(flag))
      refuse_flags(fmt::format("{} is for measuring: name the hosts to measure, HOST…", flag));
  }
  const Security security = read_security(values);
  std::string address = values.text("--listen");
  if (address.empty()) address = text_of({"0.0.0.0", kUsualPort});
  read_flag("--listen", [&] { return parse_address(address); });
  const auto loaded = secure_server(security, address, "--listen", "askers");
  Interrupt interrupt;
  ProbeServer server({.address = address,
                      .security = loaded,
                      .roof = [] { return host_of_moment().host; },
                      .say = print_progress});
  Security known = security;
  known.loaded = loaded;
  print_progress(fmt::format("serves at {} until Ctrl-C; encrypted: {}", server.address(),
                             tls_in_words(known)));
  wait_to_read(interrupt.fd(), Deadline::after(std::chrono::hours(24 * 365 * 10)));
  return 0;
}

std::string with_port(const std::string& host) {
  const bool bare_ipv6 = std::ranges::count(host, ':') > 1 && !host.starts_with('[');
  const bool has_port = !bare_ipv6 && host.rfind(':') != host.npos && !host.ends_with(']');
  const std::string in_brackets = bare_ipv6 ? "[" + host + "]" : host;
  std::string address = has_port ? host : fmt::format("{}:{}", in_brackets, kUsualPort);
  const Address read = read_flag("HOST", [&] { return parse_address(address); });
  if (read.port == 0) refuse_flags(fmt::format("HOST {}: port 0 is nobody's", host));
  return address;
}

/// Returns the host's name without its port, if no other host has that name; else the whole
/// address.
std::string name_of(const std::string& address, const std::vector<std::string>& all) {
  const std::string host = host_of(address);
  const auto same =
      std::ranges::count_if(all, [&](const std::string& other) { return host_of(other) == host; });
  return same == 1 ? host : address;
}

std::vector<ProbedHost> hosts_to_probe(const FlagValues& values,
                                       const std::vector<std::string>& addresses) {
  std::vector<ProbedHost> hosts;
  int here = 0;
  for (const std::string& address : addresses) {
    if (std::ranges::count(addresses, address) > 1)
      refuse_flags(fmt::format("HOST {} is named twice", address));
    if (is_of_this_host(address)) ++here;
    hosts.push_back({name_of(address, addresses), address});
  }
  const auto loopback = std::ranges::find_if(addresses, is_loopback);
  if (loopback != addresses.end() && here < int(addresses.size()))
    refuse_flags(fmt::format("HOST {}: the other hosts do not reach it by that name", *loopback));
  const bool is_named = here > 0 && addresses.size() > 1;
  if (!values.given("--remote-only") && !is_named) {
    std::string own = host_name();
    if (std::ranges::count(hosts, own, &ProbedHost::name) > 0) own += " (here)";
    hosts.insert(hosts.begin(), {own, ""});
  }
  if (hosts.size() < 2) refuse_flags("--remote-only leaves one host: name two, at least");
  if (hosts.size() > kMostHosts)
    refuse_flags(fmt::format("these are {} hosts, and no more than {} are measured at once",
                             hosts.size(), kMostHosts));
  return hosts;
}

std::string duration_text(Duration duration) {
  const double seconds = std::ceil(std::chrono::duration<double>(duration).count());
  return seconds < 120 ? fmt::format("{:.0f} s", seconds)
                       : fmt::format("{:.0f} min", std::ceil(seconds / 60));
}

std::vector<std::string> comment_of(const Probed& probed, double seconds) {
  const Circumstances made = circumstances();
  std::vector<std::string> lines = {
      "Hosts and the network between them, for `paceline predict MODEL --hosts FILE`",
      fmt::format("Measured {} by Paceline {}, each rate for {:g} s: {}", made.started,
                  made.version, seconds, made.command),
      "gbps: of the fastest pair that a host is in; of a pair: of up to four streams"};
  for (std::size_t i = 0; i < probed.hosts.size(); ++i) {
    if (!probed.missing[i].empty())
      lines.push_back(
          fmt::format("INCOMPLETE: {} is missing: {}", probed.hosts[i].name, probed.missing[i]));
  }
  for (const ProbedPair& pair : probed.pairs) {
    const auto name = [&](int host) { return probed.hosts[std::size_t(host)].name; };
    if (!pair.figures)
      lines.push_back(fmt::format("INCOMPLETE: {} and {} were not measured: {}", name(pair.first),
                                  name(pair.second), pair.missing));
  }
  return lines;
}

void say_meaning(const Arguments& prediction, const std::string& hosts_text) {
  const models::Model& model = named_model(prediction.front(), " --predict");
  const MemoryFile file;
  write_text_file("the hosts", file.path(), hosts_text);
  Arguments flags(prediction.begin() + 1, prediction.end());
  flags.insert(flags.end(), {"--hosts", file.path()});
  const std::optional<PredictedModel> predicted = predict_model(model, flags);
  if (!predicted) return;
  say("\n" + meaning_text(std::string(model.name()), predicted->value_bytes,
                          parse_hosts(hosts_text, "hosts"), predicted->predictions));
}

/// Reads the flags of the prediction, so that faults in them are reported before anything is
/// measured. Returns false after it has printed the help, for --help.
bool are_read(const Arguments& prediction) {
  if (prediction.empty()) return true;
  const models::Model& model = named_model(prediction.front(), " --predict");
  for (const std::string& word : prediction) {
    if (word.starts_with("--hosts") || word.starts_with("--lab-"))
      refuse_flags(fmt::format("{}: the hosts are those that are measured", word));
  }
  return can_be_predicted(model, {prediction.begin() + 1, prediction.end()});
}

int measure_hosts(const FlagValues& values, const Arguments& prediction) {
  if (values.given("--listen"))
    refuse_flags("--listen is for serving: without HOST, on the hosts that are measured");
  const std::string out = values.given("--out") ? values.text("--out") : "hosts.toml";
  const double seconds = values.positive_number("--seconds", kMostSeconds).value_or(kUsualSeconds);
  if (seconds < kLeastSeconds)
    refuse_flags(fmt::format("--seconds {:g}: no rate is known after less than {:g} s", seconds,
                             kLeastSeconds));
  std::vector<std::string> addresses;
  for (const std::string& host : values.all("HOST")) addresses.push_back(with_port(host));
  if (!values.given("--out") && std::filesystem::exists(out))
    refuse_flags(
        fmt::format("{0} is there already: --out {0} writes over it, and --out FILE "
                    "another one",
                    out));
  check_new_file("--out", out);
  if (!are_read(prediction)) return 0;
  const Security security = read_security(values);
  Prober prober(
      {.hosts = hosts_to_probe(values, addresses),
       .each = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)),
       .security = secure_calls(security, addresses),
       .roof = [] { return host_of_moment().host; },
       .say = print_progress});
  print_progress(fmt::format("measures {}, which takes about {}, and {} at most", prober.subject(),
                             duration_text(prober.usual()), duration_text(prober.longest())));
  const Probed probed = prober.measure();
  say(probed_text(probed));
  const DescribedHosts hosts = described(probed);
  const bool writes = probed.is_whole() || (values.given("--partial") && !hosts.hosts.empty());
  if (writes) {
    const std::string text = hosts_file_text(hosts, comment_of(probed, seconds));
    // Checks the text, so that only a file that can be read is written.
    parse_hosts(text, out);
    write_text_file("the file of hosts", out, text);
    say(fmt::format("Written to {}: paceline predict MODEL --hosts {}\n", out, shell_words({out})));
    if (!prediction.empty()) say_meaning(prediction, text);
  }
  if (probed.is_whole()) return 0;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("not all was measured (see above): {}",
                          writes ? fmt::format("{} says what is missing", out)
                                 : "nothing was written; --partial writes what there is"));
}

}  // namespace

std::vector<CommandLine> probe_lines() { return {probe_line()}; }

int probe_command(const Arguments& arguments) {
  const ProbeWords words = split(arguments);
  const std::optional<FlagValues> values = parse(probe_line(), words.own);
  if (!values) return 0;
  if (values->given("HOST")) return measure_hosts(*values, words.prediction);
  if (!words.prediction.empty())
    refuse_flags("--for is for measuring: name the hosts to measure, HOST…, before it");
  return serve_probes(*values);
}

}  // namespace paceline
