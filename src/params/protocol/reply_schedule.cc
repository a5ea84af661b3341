#include "params/protocol/reply_schedule.h"

namespace paceline {
namespace {

constexpr std::uint32_t kUnranked = 0xfffffffe, kLast = 0xffffffff;

}  // namespace

void NeedOrder::set(std::span<const std::uint32_t> pieces) {
  std::ranges::fill(ranks_, kUnranked);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i] >= ranks_.size()) ranks_.resize(pieces[i] + 1, kUnranked);
    ranks_[pieces[i]] = std::uint32_t(i);
  }
}

// A state is the content of one moment. Values of an earlier moment must not arrive after the
// state, so the state goes last.
std::uint32_t NeedOrder::rank(const FrameHeader& header) const {
  if (MessageType{header.type} == MessageType::kState) return kLast;
  return header.id < ranks_.size() ? ranks_[header.id] : kUnranked;
}

}  // namespace paceline
