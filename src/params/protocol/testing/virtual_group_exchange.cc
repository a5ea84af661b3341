// The sums that the workers of an all-reduce in virtual time make in the middle of a step.
#include <fmt/format.h>

#include "params/protocol/testing/virtual_group.h"

namespace paceline {

using namespace std::chrono_literals;

void VirtualGroup::begin_exchanges(Process& process) {
  const Tag tag{process.group->epoch(), process.group->step()};
  if (process.exchanges_of && process.exchanges_of->step == tag.step) ++result_.repeated;
  process.exchanges_of = tag;
  process.exchanged = 0;
  process.gave = false;
}

// The exchanges of the step that the process has begun, one after the other.
void VirtualGroup::exchange(Process& process) {
  const CollectiveGroup& group = *process.group;
  if (group.begun_by(process.worker) == nullptr) return;
  const Tag tag{group.begun_by(process.worker)->epoch, group.step()};
  if (process.exchanges_of != tag || process.gave) return;
  if (process.exchanged == options_.exchanges) return;
  process.gave = true;
  time_.after(time_.between(100us, 20ms), [this, number = process.number, tag] {
    on(number, [this, tag](Process& p) { give_sums(p, tag); });
  });
}

void VirtualGroup::give_sums(Process& process, Tag tag) {
  const CollectiveGroup& group = *process.group;
  const CollectiveBegin* const begun = group.begun_by(process.worker);
  if (begun == nullptr || Tag{begun->epoch, group.step()} != tag) return;
  const std::vector<double> own{1, double(process.worker)};
  const std::uint32_t which = process.sums->give(number_of(tag), own);
  for (const std::int32_t member : group.members()) {
    if (member == process.worker) continue;
    send(process, member, 1000, [this, tag, which, own, from = process.worker](Process& to) {
      to.sums->take(from, number_of(tag), which, own);
      finish_exchange(to);
    });
  }
  finish_exchange(process);
}

void VirtualGroup::finish_exchange(Process& process) {
  const CollectiveGroup& group = *process.group;
  const CollectiveBegin* const begun = group.begun_by(process.worker);
  if (begun == nullptr || !process.gave || process.exchanged == options_.exchanges) return;
  if (process.exchanges_of != Tag{begun->epoch, group.step()}) return;
  const std::vector<std::int32_t>& members = group.members();
  if (process.sums->which() != std::uint32_t(process.exchanged)) return;
  if (!process.sums->whole(members)) return;
  std::vector<double> sums(2), expected{double(members.size()), 0};
  process.sums->sum(members, sums);
  for (const std::int32_t member : members) expected[1] += member;
  if (sums != expected) complain(fmt::format("worker:{} has other sums", process.worker));
  ++process.exchanged;
  process.gave = false;
  look(process);
}

}  // namespace paceline
