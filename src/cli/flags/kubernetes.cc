#include "cli/flags/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "cli/flags/flag_checks.h"
#include "cli/flags/placed_flags.h"

namespace paceline {
namespace {

// All pods use this port, since each pod has its own address.
constexpr int kPodPort = 2222;
constexpr std::string_view kPsJob = "-ps-0", kWorkerJob = "-worker-0";

std::string variable_in(const Environment& environment, const char* name, const char* from) {
  const std::string_view text = text_in(environment, name);
  if (text.empty())
    refuse_flags(
        fmt::format("Kubernetes: JOB_SERVICE={} is set, and {} is not: {} (docs/kubernetes.md)",
                    text_in(environment, "JOB_SERVICE"), name, from));
  return std::string(text);
}

// Checks a part of a pod's address: it may have letters, digits, dashes and dots.
void check_dns_name(const char* name, const std::string& text) {
  if (std::ranges::all_of(
          text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.'; }))
    return;
  refuse_flags(fmt::format("Kubernetes: {}={}: is no name of Kubernetes", name, text));
}

}  // namespace

std::vector<GivenFlag> flags_of_kubernetes(const Environment& environment,
                                           const GivenTasks& tasks) {
  const std::string service = std::string(text_in(environment, "JOB_SERVICE"));
  const std::string job =
      variable_in(environment, "JOB_NAME", "it is the label batch.kubernetes.io/job-name");
  const std::string index_text = variable_in(environment, "JOB_COMPLETION_INDEX",
                                             "pods of a Job with completionMode: Indexed have it");
  check_dns_name("JOB_SERVICE", service);
  check_dns_name("JOB_NAME", job);
  int index = -1;
  const char* const end = index_text.data() + index_text.size();
  const auto [stop, status] = std::from_chars(index_text.data(), end, index);
  if (status != std::errc() || stop != end || index < 0)
    refuse_flags(
        fmt::format("Kubernetes: JOB_COMPLETION_INDEX={}: must be a whole number", index_text));
  const bool of_ps = job.ends_with(kPsJob), of_workers = job.ends_with(kWorkerJob);
  const bool grouped = tasks.ps > 0 && (of_ps || of_workers);
  const int pods = !grouped ? tasks.ps + tasks.workers : of_ps ? tasks.ps : tasks.workers;
  if (index >= pods || (of_ps && tasks.ps == 0))
    refuse_flags(
        fmt::format("Kubernetes: JOB_NAME={} and JOB_COMPLETION_INDEX={} contradict --ps "
                    "{} --workers {}, by which that Job has {} pods",
                    job, index, tasks.ps, tasks.workers, of_ps && tasks.ps == 0 ? 0 : pods));
  const std::string set = job.substr(0, job.size() - (of_ps ? kPsJob : kWorkerJob).size());
  std::vector<std::string> addresses;
  for (int task = 0; task < tasks.ps + tasks.workers; ++task) {
    const bool is_ps = task < tasks.ps;
    addresses.push_back(grouped ? fmt::format("{}{}-{}.{}:{}", set, is_ps ? kPsJob : kWorkerJob,
                                              is_ps ? task : task - tasks.ps, service, kPodPort)
                                : fmt::format("{}-{}.{}:{}", job, task, service, kPodPort));
  }
  std::vector<GivenFlag> flags =
      placed_flags("Kubernetes", fmt::format("JOB_NAME={}, JOB_COMPLETION_INDEX={}", job, index),
                   grouped && of_workers ? tasks.ps + index : index, addresses, tasks.ps);
  // Listens at all addresses, since the DNS may not know the pod's name yet.
  flags.push_back({"--bind", {"0.0.0.0"}, flags.front().place});
  return flags;
}

}  // namespace paceline
