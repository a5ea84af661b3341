#include "params/wire/collective_messages.h"

#include <array>

#include "params/wire/record_fields.h"

namespace paceline {

void fields(auto& wire, Of<GroupStatus> auto& status) {
  wire.choice("standing", status.standing,
              std::array{Standing::kJoining, Standing::kMember, Standing::kRetired});
  wire(status.epoch, status.step, status.members, status.connected, status.done, status.ended,
       status.wants_values, status.cut_off, status.counted, status.committed, status.saved);
}

void fields(auto& wire, Of<Proposal> auto& proposal) { wire(proposal.epoch, proposal.members); }

void fields(auto& wire, Of<Agreement> auto& agreement) {
  wire(agreement.epoch, agreement.highest, agreement.step, agreement.counted, agreement.in_place,
       agreement.unused, agreement.held);
}

void fields(auto& wire, Of<Formation> auto& formation) {
  wire(formation.epoch, formation.members, formation.step, formation.counted, formation.source,
       formation.lacking, formation.in_place, formation.own_steps, formation.unused,
       formation.held);
}

void fields(auto& wire, Of<CollectiveBegin> auto& begin) {
  wire(begin.epoch, begin.step, begin.examples, begin.own_step, begin.made, begin.training,
       begin.records);
}

void fields(auto& wire, Of<StepMark> auto& mark) { wire(mark.epoch, mark.step); }

std::vector<std::byte> encode(const GroupStatus& status) { return encode_fields(status); }
std::vector<std::byte> encode(const Proposal& proposal) { return encode_fields(proposal); }
std::vector<std::byte> encode(const Agreement& agreement) { return encode_fields(agreement); }
std::vector<std::byte> encode(const Formation& formation) { return encode_fields(formation); }
std::vector<std::byte> encode(const CollectiveBegin& begin) { return encode_fields(begin); }
std::vector<std::byte> encode(const StepMark& mark) { return encode_fields(mark); }

GroupStatus decode_group_status(std::span<const std::byte> payload) {
  return decode_fields<GroupStatus>(payload, "group_status");
}

Proposal decode_proposal(std::span<const std::byte> payload) {
  return decode_fields<Proposal>(payload, "propose");
}

Agreement decode_agreement(std::span<const std::byte> payload) {
  return decode_fields<Agreement>(payload, "agree");
}

Formation decode_formation(std::span<const std::byte> payload) {
  return decode_fields<Formation>(payload, "form");
}

CollectiveBegin decode_collective_begin(std::span<const std::byte> payload) {
  return decode_fields<CollectiveBegin>(payload, "collective_begin");
}

StepMark decode_step_mark(std::span<const std::byte> payload, const char* message) {
  return decode_fields<StepMark>(payload, message);
}

}  // namespace paceline
