#include "tests/fuzz/ps_script.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "params/ps/ps_driver.h"
#include "params/ps/ps_peer.h"
#include "params/wire/save_messages.h"

namespace paceline::testing {
namespace {

constexpr int kPeers = 4;
enum Act : std::uint8_t {
  kFrame,
  kShare,
  kStopReading,
  kReadOn,
  kVanish,
  kFindTheFile,
  kSaveThere,
  kWait,
  kStopServer
};

// The most elements of a declaration. Larger ones may need more memory than any machine has, or so
// much that clearing it takes long.
constexpr std::int64_t kMostElements = 1 << 16;

/// A file that the ps can see, in a folder of this process.
class SeenFile {
 public:
  SeenFile() {
    const bool memory = std::filesystem::is_directory("/dev/shm");
    folder_ = memory ? "/dev/shm/paceline-fuzz-XXXXXX" : "/tmp/paceline-fuzz-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no folder " + folder_);
    std::ofstream(find().path) << find().content;
  }
  ~SeenFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  SeenFile(const SeenFile&) = delete;
  SeenFile& operator=(const SeenFile&) = delete;

  FindFile find() const { return {folder_ + "/seen", "content"}; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

/// The ps's end of a connection. What the ps sends is read at once, unless the peer has stopped
/// reading.
class FakeConnection : public Connection {
 public:
  ~FakeConnection() override { flush(); }
  void send(const FrameHeader& header, std::span<const std::byte> payload, void (*sent)(void*),
            void* context) override {
    const std::lock_guard lock(mutex_);
    const MessageType type{header.type};
    said_.insert(type);
    waiting_.push_back({payload, sent, context});
    if (type != MessageType::kSaved && type != MessageType::kRefuse) return;
    ++answers_;
    answered_.notify_all();
  }
  /// Waits until the ps has answered `saves` requests to save, with kSaved or kRefuse. Returns
  /// false if it does not do so in time.
  bool wait_saved(int saves) {
    std::unique_lock lock(mutex_);
    return answered_.wait_for(lock, std::chrono::seconds(60), [&] { return answers_ >= saves; });
  }
  void close(Deadline) override { closes_ = true; }
  bool can_share() const override { return true; }
  void share(std::uint32_t, std::shared_ptr<const SharedMemory> memory) override {
    for (const std::byte byte : memory->bytes()) sum_ += unsigned(byte);
  }
  bool idle() const override { return true; }
  std::string peer() const override { return "fake"; }
  std::string_view kind() const override { return "inproc"; }
  const Traffic& traffic() const override { return traffic_; }

  /// Reads all that the ps has sent, byte by byte.
  void flush() {
    while (!waiting().empty()) {
      std::vector<Frame> frames;
      {
        const std::lock_guard lock(mutex_);
        frames.swap(waiting_);
      }
      for (const Frame& frame : frames) {
        for (const std::byte byte : frame.payload) sum_ += unsigned(byte);
        if (frame.sent != nullptr) frame.sent(frame.context);
      }
    }
  }
  bool closes() const { return closes_; }
  std::set<MessageType> said() const {
    const std::lock_guard lock(mutex_);
    return said_;
  }

 private:
  struct Frame {
    std::span<const std::byte> payload;
    void (*sent)(void*);
    void* context;
  };
  std::vector<Frame> waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::vector<Frame> waiting_;
  int answers_ = 0;
  std::set<MessageType> said_;
  std::atomic<bool> closes_{false};
  std::atomic<unsigned> sum_{0};
  Traffic traffic_;
};

/// One peer: a connection, from its first act until one side ends it.
struct FakePeer {
  std::shared_ptr<FakeConnection> connection;  // null: it is not connected
  Receiver* receiver = nullptr;
  bool reads = true;
  std::uint32_t memories = 0;
  int saves = 0;  // asked for
};

bool is_small(const Declare& declare) {
  std::int64_t left = kMostElements;
  for (const VariableSpec& variable : declare.variables) {
    left -= variable.shape.elements();
    if (left < 0) return false;
  }
  return true;
}

bool can_be_held(MessageType type, std::span<const std::byte> payload) {
  if (type != MessageType::kDeclare) return true;
  try {
    return is_small(decode_declare(payload));
  } catch (const Error&) {
    return true;  // the ps says the same
  }
}

class Player {
 public:
  explicit Player(Bytes script) : script_(script), job_(options(), [] {}) {}

  PsEnd play() {
    while (!script_.empty() && !ended_) {
      const std::uint8_t act = std::uint8_t(take(1));
      play(Act(act >> 4), peers_[act % kPeers]);
      turn();
    }
    for (FakePeer& peer : peers_) {
      if (peer.connection != nullptr && !peer.connection->wait_saved(peer.saves)) __builtin_trap();
    }
    for (FakePeer& peer : peers_) end(peer, {ErrorCode::kUnavailable, "the script is over"});
    job_.members();
    if (end_.warnings.find("CHECK(") != std::string::npos) {
      throw Error(ErrorCode::kInternal, end_.warnings);
    }
    end_.applied = job_.applied();
    return end_;
  }

 private:
  static const SeenFile& seen_file() {
    static const SeenFile file;
    return file;
  }

  PsOptions options() {
    PsOptions options;
    options.spec = {.ps = {"ps:1"}, .workers = {"a:1", "b:1", "c:1"}};
    options.cluster_id = "fuzz";
    options.threads = 1;
    options.clock = &clock_;
    options.after_reads = {{"fetched", [](std::int64_t, std::span<float> values) {
                              for (float& value : values) ++value;
                            }}};
    options.say = [](const std::string&) {};
    options.warn = [this](const std::string& line) { end_.warnings += line + "\n"; };
    return options;
  }

  std::uint64_t take(std::size_t bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < bytes && !script_.empty(); ++i) {
      number |= std::uint64_t(script_.front()) << (8 * i);
      script_ = script_.subspan(1);
    }
    return number;
  }
  /// Takes bytes that follow their length.
  std::span<const std::byte> take_payload() {
    const std::size_t length = std::min<std::size_t>(take(2), script_.size());
    const auto payload = std::as_bytes(script_.first(length));
    script_ = script_.subspan(length);
    return payload;
  }

  void connect(FakePeer& peer) {
    if (peer.connection != nullptr) return;
    peer = {};
    peer.connection = std::make_shared<FakeConnection>();
    peer.receiver = job_.accept(peer.connection);
  }

  void play(Act act, FakePeer& peer) {
    if (act == kWait) return clock_.advance(std::chrono::seconds(take(1)));
    if (act == kStopServer) return void(job_.ask_to_leave());
    connect(peer);
    switch (act) {
      case kFrame:
        return play_frame(peer);
      case kShare:
        return share(peer, 1 + take(2));
      case kStopReading:
      case kReadOn:
        peer.reads = act == kReadOn;
        return;
      case kVanish:
        return end(peer, {ErrorCode::kUnavailable, "it has vanished"});
      case kFindTheFile:
        return receive(peer, {.type = std::uint16_t(MessageType::kFindFile)},
                       encode(seen_file().find()));
      case kSaveThere: {
        const std::uint64_t save = take(2);
        const auto name = take_payload();
        const std::string path =
            seen_file().path({reinterpret_cast<const char*>(name.data()), name.size()});
        return receive(peer, {.type = std::uint16_t(MessageType::kSaveShard), .step = save},
                       encode_text(path));
      }
      default:
        return;
    }
  }

  void play_frame(FakePeer& peer) {
    FrameHeader header;
    header.type = std::uint16_t(take(1));
    header.flags = std::uint16_t(take(1));
    header.id = std::uint32_t(take(2));
    header.offset = std::uint64_t(std::int64_t(std::int32_t(take(4))));
    header.step = std::uint64_t(std::int64_t(std::int32_t(take(4))));
    const auto payload = take_payload();
    if (can_be_held(MessageType{header.type}, payload)) receive(peer, header, payload);
  }

  /// Receives the frame as a link does.
  void receive(FakePeer& peer, FrameHeader header, std::span<const std::byte> payload) {
    header.payload_bytes = std::uint32_t(payload.size());
    call(peer, [&] {
      std::span<std::byte> place;
      if (!payload.empty()) {
        place = peer.receiver->place_payload(header);
        if (place.size() != payload.size()) __builtin_trap();
        std::ranges::copy(payload, place.begin());
      }
      if (header.type == std::uint16_t(MessageType::kSaveShard)) ++peer.saves;
      peer.receiver->on_frame(header, place);
    });
  }
  void share(FakePeer& peer, std::size_t bytes) {
    call(peer, [&] { peer.receiver->on_shared(peer.memories++, SharedMemory::create(bytes)); });
  }
  template <typename F>
  void call(FakePeer& peer, F&& function) {
    try {
      function();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInternal) throw;
      end(peer, error);
    }
  }

  void end(FakePeer& peer, const Error& error) {
    if (peer.connection == nullptr) return;
    const std::shared_ptr<FakeConnection> connection = std::move(peer.connection);
    peer.receiver->on_closed(error);
    connection->flush();
    end_.said.merge(connection->said());
  }

  void turn() {
    for (FakePeer& peer : peers_) {
      if (peer.connection != nullptr && peer.reads) peer.connection->flush();
    }
    job_.turn(clock_.now());
    for (FakePeer& peer : peers_) {
      if (peer.connection == nullptr || !peer.connection->closes()) continue;
      end(peer, {ErrorCode::kCancelled, "the ps has closed"});
    }
    ended_ = job_.end(clock_.now()) != Membership::End::kNotYet;
  }

  Bytes script_;
  PsEnd end_;
  ManualClock clock_;
  PsDriver job_;
  std::array<FakePeer, kPeers> peers_;
  bool ended_ = false;
};

}  // namespace

PsEnd play_ps_script(Bytes script) { return Player(script).play(); }

void PsScript::act(int which, int peer) { bytes_.push_back(std::uint8_t(which << 4 | peer)); }

void PsScript::put(std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_.push_back(std::uint8_t(number >> (8 * i)));
}

PsScript& PsScript::frame(int peer, MessageType type, const std::vector<std::byte>& payload,
                          FrameHeader header) {
  act(kFrame, peer);
  put(std::uint64_t(type), 1);
  put(header.flags, 1);
  put(header.id, 2);
  put(header.offset, 4);
  put(header.step, 4);
  put(payload.size(), 2);
  for (const std::byte byte : payload) bytes_.push_back(std::uint8_t(byte));
  return *this;
}

PsScript& PsScript::share(int peer, std::uint16_t bytes) {
  act(kShare, peer);
  put(bytes - 1U, 2);
  return *this;
}

PsScript& PsScript::stop_reading(int peer) {
  act(kStopReading, peer);
  return *this;
}

PsScript& PsScript::read_on(int peer) {
  act(kReadOn, peer);
  return *this;
}

PsScript& PsScript::vanish(int peer) {
  act(kVanish, peer);
  return *this;
}

PsScript& PsScript::find_file(int peer) {
  act(kFindTheFile, peer);
  return *this;
}

PsScript& PsScript::save_shard(int peer, const std::string& name, std::uint16_t save) {
  act(kSaveThere, peer);
  put(save, 2);
  put(name.size(), 2);
  bytes_.insert(bytes_.end(), name.begin(), name.end());
  return *this;
}

PsScript& PsScript::wait_seconds(std::uint8_t seconds) {
  act(kWait, 0);
  put(seconds, 1);
  return *this;
}

PsScript& PsScript::stop_ps() {
  act(kStopServer, 0);
  return *this;
}

}  // namespace paceline::testing
