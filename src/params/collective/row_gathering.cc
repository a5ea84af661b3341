// Rows of sparse variables: every member gets those of all others, and sums them in their order.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/copy_bytes.h"
#include "params/collective/link_collectives.h"
#include "params/weighted_sum.h"
#include "params/wire/message.h"

namespace paceline {

// Rows travel with their ids: first all ids of a frame, then the rows. The offset is the number of
// rows in the frame.
void LinkCollectives::send_rows(std::size_t bucket, Lock& lock) {
  const VariableId variable = buckets_[bucket].variables.front();
  const std::byte* const ids = contributions_->bytes().data() + layout_.ids_offset(variable);
  const std::byte* const rows = contributions_->bytes().data() + layout_.offset(variable);
  const std::size_t row_bytes = row_elements(bucket) * sizeof(float);
  const std::size_t count = work_[bucket].rows;
  const std::size_t at_once =
      std::max<std::size_t>(1, kChunkBytes / (row_bytes + sizeof(std::int32_t)));
  const std::vector<std::int32_t> members = group_->members;
  const std::uint64_t tag = tag_;
  unlocked(lock, [&] {
    std::size_t first = 0;
    do {
      const std::size_t some = std::min(at_once, count - first);
      const bool last = first + some == count;
      frame_.resize(some * (row_bytes + sizeof(std::int32_t)));
      copy_bytes(frame_.data(), ids + first * sizeof(std::int32_t), some * sizeof(std::int32_t));
      copy_bytes(frame_.data() + some * sizeof(std::int32_t), rows + first * row_bytes,
                 some * row_bytes);
      const FrameHeader header{.payload_bytes = std::uint32_t(frame_.size()),
                               .type = std::uint16_t(MessageType::kContributedRows),
                               .flags = last ? kLastRows : std::uint16_t{0},
                               .id = std::uint32_t(bucket),
                               .offset = some,
                               .step = tag};
      for (const std::int32_t member : members) {
        if (member != worker_) sender_.send_copy(member, header, frame_);
      }
      first += some;
    } while (first < count);
  });
}

void LinkCollectives::take_rows(int worker, const FrameHeader& header,
                                std::span<const std::byte> payload, Lock&) {
  const std::size_t row = row_elements(header.id);
  const VariableSpec& variable = variables_[std::size_t(buckets_[header.id].variables.front())];
  GatheredRows& gathered = work_[header.id].gathered[std::size_t(worker)];
  const std::size_t count = header.offset;
  const std::size_t each = sizeof(std::int32_t) + row * sizeof(float);
  if (gathered.whole || count > payload.size() || count * each != payload.size() ||
      gathered.ids.size() + count > std::size_t(variable.shape[0])) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] {} rows of {} in {} bytes", count,
                                                  variable.name, payload.size()));
  }
  const std::size_t before = gathered.ids.size();
  gathered.ids.resize(before + count);
  gathered.rows.resize((before + count) * row);
  copy_bytes(gathered.ids.data() + before, payload.data(), count * sizeof(std::int32_t));
  copy_bytes(gathered.rows.data() + before * row, payload.data() + count * sizeof(std::int32_t),
             count * row * sizeof(float));
  check_rows(header.id, std::span(gathered.ids).subspan(before));
  if ((header.flags & kLastRows) == 0) return;
  gathered.whole = true;
  work_[header.id].there[std::size_t(worker)] = true;
  wake_for_work();
}

void LinkCollectives::check_rows(std::size_t bucket, std::span<const std::int32_t> ids) const {
  const VariableSpec& variable = variables_[std::size_t(buckets_[bucket].variables.front())];
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < variable.shape[0]) continue;
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] row {} of {}", id, variable.name));
  }
}

// A peer may change its memory at any time: the ids are copied, then checked.
void LinkCollectives::read_ids(int worker, std::size_t bucket, std::size_t count) {
  const VariableId variable = buckets_[bucket].variables.front();
  if (count > std::size_t(variables_[std::size_t(variable)].shape[0])) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] in_place with {} rows", count));
  }
  GatheredRows& gathered = work_[bucket].gathered[std::size_t(worker)];
  gathered.ids.resize(count);
  const SharedMemory& memory = *shared_[std::size_t(worker)].memories[kContributions];
  copy_bytes(gathered.ids.data(), memory.bytes().data() + layout_.ids_offset(variable),
             count * sizeof(std::int32_t));
  check_rows(bucket, gathered.ids);
}

void LinkCollectives::sum_gathered(std::size_t bucket, Lock& lock) {
  const VariableId variable = buckets_[bucket].variables.front();
  Work& work = work_[bucket];
  std::vector<WeightedRows> members;
  for (int rank = 0; rank < size(); ++rank) {
    const int member = member_at(rank);
    WeightedRows rows{.weight = group_->weights[std::size_t(rank)], .ids = {}, .rows = nullptr};
    const GatheredRows& gathered = work.gathered[std::size_t(member)];
    if (member == worker_) {
      const std::byte* const ids = contributions_->bytes().data() + layout_.ids_offset(variable);
      rows.ids = {reinterpret_cast<const std::int32_t*>(ids), work.rows};
    } else {
      rows.ids = gathered.ids;
    }
    const bool lies_there = member == worker_ || group_->in_place;
    rows.rows = lies_there ? numbers_of(member, kContributions, bucket) : gathered.rows.data();
    members.push_back(rows);
  }
  const std::uint64_t tag = tag_;
  const std::size_t row = row_elements(bucket);
  unlocked(lock, [&] { sum_rows(members, row, work.ids, work.row_sums); });
  if (tag_ != tag) return;
  note_whole(bucket, lock);
}

}  // namespace paceline
