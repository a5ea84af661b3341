#include "bench/reducing_group.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "bench/peer_process.h"
#include "bench/reducer.h"
#include "bench/shared_word.h"
#include "net/link.h"
#include "params/collective/link_collectives.h"
#include "params/wakeup.h"

namespace paceline::bench {
namespace {

constexpr int kMostMembers = 8;
constexpr std::chrono::seconds kGroupMeetsWithin{10};
constexpr std::chrono::milliseconds kLookAround{250};

/// The progress of one member, in memory that all members share.
struct MemberWords {
  SharedWord listens, came, goes;
  char address[128] = {};
};
using GroupWords = std::array<MemberWords, kMostMembers>;

class ReducingMember;

/// The connection with another member. A caller says its rank in the first frame.
class MemberConnection : public Receiver {
 public:
  MemberConnection(ReducingMember& member, int rank) : member_(member), rank_(rank) {}
  std::span<std::byte> place_payload(const FrameHeader& header) override {
    room_.resize(header.payload_bytes);
    return room_;
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  void on_closed(const Error&) override { connection.reset(); }
  std::shared_ptr<Connection> connection;

 private:
  ReducingMember& member_;
  int rank_;  // rank of the other end; -1: unknown
  std::vector<std::byte> room_;
};

class ReducingMember : public PeerSender {
 public:
  ReducingMember(const ReducingOptions& options, int rank, GroupWords& words)
      : options_(options),
        rank_(rank),
        words_(words),
        reducer_(rank, options.members, options.link == "shm", options.bytes),
        collectives_(reducer_.variables(), reducer_.layout(), rank, options.members, *this,
                     reducer_),
        link_(make_link(options.link, {})) {
    reducer_.set_wake([this] { wakeup_.notify(); });
    reducer_.fill(collectives_);
    meet_others();
    reduce();
    reducer_.check_sums(collectives_);
  }
  ~ReducingMember() override { link_.reset(); }

  double reduce() {
    return reducer_.reduce(
        collectives_, [this] { meet(); },
        [this](const std::function<bool()>& whole) { wait(whole); });
  }

  void send(int to, const FrameHeader& header, std::span<const std::byte> payload,
            void (*sent)(void*), void* context) override {
    connections_[std::size_t(to)]->send(header, payload, sent, context);
  }
  void send_copy(int to, const FrameHeader& header, std::span<const std::byte> payload) override {
    connections_[std::size_t(to)]->send_copy(header, payload);
  }
  LinkCollectives& collectives() { return collectives_; }
  /// Keeps the connection to the member of this rank.
  void know(int rank, std::shared_ptr<Connection> connection) {
    if (connection->can_share()) {
      connection->share(LinkCollectives::kContributions, collectives_.contributions());
      connection->share(LinkCollectives::kSums, collectives_.sums());
    } else {
      ++known_;
    }
    connections_[std::size_t(rank)] = std::move(connection);
    ++known_;
  }
  void take_memory(int rank, std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
    collectives_.take_memory(rank, id, std::move(memory));
    if (id == LinkCollectives::kSums) ++known_;
  }

 private:
  MemberWords& words_of(int rank) { return words_[std::size_t(rank)]; }

  Receiver* accept(std::shared_ptr<Connection> connection) {
    const std::lock_guard lock(mutex_);
    receivers_.push_back(std::make_unique<MemberConnection>(*this, -1));
    receivers_.back()->connection = std::move(connection);
    return receivers_.back().get();
  }

  void call(int rank) {
    MemberConnection* receiver = nullptr;
    {
      const std::lock_guard lock(mutex_);
      receivers_.push_back(std::make_unique<MemberConnection>(*this, rank));
      receiver = receivers_.back().get();
    }
    const auto connection =
        link_->connect(words_of(rank).address, *receiver, Deadline::after(kGroupMeetsWithin));
    connection->send({.id = std::uint32_t(rank_)}, {});
    know(rank, connection);
  }

  // Calls the members of lower rank, and waits until those of higher rank have called.
  void meet_others() {
    const std::string address = link_->listen(
        "127.0.0.1:0", [this](std::shared_ptr<Connection> one) { return accept(std::move(one)); });
    std::strncpy(words_of(rank_).address, address.c_str(), sizeof MemberWords::address - 1);
    words_of(rank_).listens.set(1);
    const Deadline deadline = Deadline::after(kGroupMeetsWithin);
    const auto come = [&](const auto& holds) {
      while (!holds()) {
        if (deadline.passed()) throw Error(ErrorCode::kUnavailable, "[bench] a member is missing");
        std::this_thread::yield();
      }
    };
    for (int rank = 0; rank < rank_; ++rank) {
      come([&] { return words_of(rank).listens.get() == 1; });
      call(rank);
    }
    come([&] { return known_ == 2 * (options_.members - 1); });
  }

  // Once all members have arrived, the first member tells the others to go on.
  void meet() {
    const std::uint32_t turn = ++turns_;
    if (rank_ != 0) {
      words_of(rank_).came.set(turn);
      return words_of(rank_).goes.wait_for(turn);
    }
    for (int other = 1; other < options_.members; ++other) {
      words_of(other).came.wait_for(turn);
    }
    for (int other = 1; other < options_.members; ++other) {
      words_of(other).goes.set(turn);
    }
  }

  void wait(const std::function<bool()>& whole) {
    while (!wakeup_.wait(*link_, Deadline::after(kLookAround), whole)) continue;
  }

  const ReducingOptions options_;
  const int rank_;
  GroupWords& words_;
  std::uint32_t turns_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<MemberConnection>> receivers_;
  std::array<std::shared_ptr<Connection>, kMostMembers> connections_;
  // Counts two steps for each other member: its connection, and its memory.
  std::atomic<int> known_{0};
  Wakeup wakeup_;
  Reducer reducer_;
  LinkCollectives collectives_;
  std::unique_ptr<Link> link_;
};

void MemberConnection::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  if (rank_ >= 0) return member_.collectives().arrived(rank_, header, payload);
  if (header.id >= kMostMembers) throw Error(ErrorCode::kDataLoss, "[bench] no rank of a member");
  rank_ = int(header.id);
  member_.know(rank_, connection);
}

void MemberConnection::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  member_.take_memory(rank_, id, std::move(memory));
}

class ReducingProcesses : public ReducingGroup {
 public:
  explicit ReducingProcesses(const ReducingOptions& options) {
    for (int rank = 1; rank < options.members; ++rank) {
      const auto serve = [&, rank] {
        ReducingMember member(options, rank, *words_);
        while (true) member.reduce();
      };
      others_.push_back(std::make_unique<PeerProcess>(serve));
    }
    first_.emplace(options, 0, *words_);
  }
  double reduce() override { return first_->reduce(); }
  void pause() override {
    for (const auto& other : others_) other->pause();
  }
  void resume() override {
    for (const auto& other : others_) other->resume();
  }

 private:
  const SharedObject<GroupWords> words_;
  std::vector<std::unique_ptr<PeerProcess>> others_;
  std::optional<ReducingMember> first_;
};

}  // namespace

std::unique_ptr<ReducingGroup> make_reducing_group(const ReducingOptions& options) {
  return std::make_unique<ReducingProcesses>(options);
}

}  // namespace paceline::bench
