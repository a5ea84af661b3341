#include "params/worker/worker_state.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "paceline/error.h"
#include "params/worker/ps_connection.h"
#include "params/worker/worker_driver.h"

namespace paceline {
namespace {

const VariableSpec kVector{.name = "w", .shape = {3}};

float first_of(const Tensor& tensor) { return tensor.data<float>()[0]; }

void put(std::span<std::byte> place, float value) {
  std::fill_n(reinterpret_cast<float*>(place.data()), place.size() / sizeof(float), value);
}

TEST(PulledValue, TheNextOneHasMemoryOfItsOwnUntilItIsTaken) {
  PulledValue value(kVector);
  EXPECT_FALSE(value.held());
  EXPECT_FALSE(value.value().defined());
  value.allocate();
  value.value().data<float>()[0] = 1;
  EXPECT_TRUE(value.place_of_next().empty()) << "none was asked for";
  for (const float next : {2.0f, 3.0f, 4.0f}) {
    value.ask_next();
    ASSERT_EQ(value.place_of_next().size(), 3 * sizeof(float));
    put(value.place_of_next(), next);
    EXPECT_EQ(first_of(value.value()), next - 1);
    EXPECT_FALSE(value.next_came());
    value.next_arrived();
    EXPECT_TRUE(value.next_came());
    EXPECT_TRUE(value.place_of_next().empty()) << "one was asked for";
    value.take_next();
    EXPECT_EQ(first_of(value.value()), next);
  }
}

TEST(PulledValue, WhatIsForgottenDoesNotCome) {
  PulledValue value(kVector);
  value.allocate();
  value.ask_next();
  value.forget_next();
  value.next_arrived();
  EXPECT_FALSE(value.next_came());
  EXPECT_TRUE(value.place_of_next().empty());
}

class SilentPeer : public Receiver {
 public:
  std::span<std::byte> place_payload(const FrameHeader&) override { return {}; }
  void on_frame(const FrameHeader&, std::span<const std::byte>) override {}
  void on_shared(std::uint32_t, std::shared_ptr<const SharedMemory>) override {}
  void on_closed(const Error&) override {}
};

/// A worker's side of a connection to a ps. The test plays the ps, which may send anything.
class FromThePs : public ::testing::Test {
 protected:
  FromThePs() : link_(make_link("inproc", {})) {
    link_->listen("ps:1", [this](const std::shared_ptr<Connection>&) { return &peer_; });
    ps_.connect(*link_, Deadline::after(std::chrono::seconds(60)));
  }
  static FrameHeader ahead(std::size_t bytes, std::uint64_t version, std::uint64_t offset = 0) {
    return {.payload_bytes = std::uint32_t(bytes),
            .type = std::uint16_t(MessageType::kValues),
            .flags = kOfVersion | kAskedAhead,
            .id = 0,
            .offset = offset,
            .step = version};
  }
  void come(const FrameHeader& header, float value) {
    const std::span<std::byte> place = ps_.place_payload(header);
    ASSERT_EQ(place.size(), header.payload_bytes);
    put(place, value);
    ps_.on_frame(header, place);
  }

  static PsStoreOptions of_one_ps() {
    PsStoreOptions options;
    options.spec.ps = {"ps:1"};
    options.reply_timeout = std::chrono::seconds(1);
    return options;
  }

  const PsStoreOptions options_ = of_one_ps();
  WorkerState core_{{kVector}, options_};
  WorkerDriver driver_{options_, core_};
  PsConnection ps_{core_, driver_, 0, "ps:1"};
  SilentPeer peer_;
  std::unique_ptr<Link> link_;  // last: its end calls the members above
};

TEST_F(FromThePs, WhatWasNotAskedForGoesNowhereButIsKnownOf) {
  core_.allocate(0);
  core_.value(0).data<float>()[0] = 1;
  EXPECT_FALSE(core_.changed(0));
  come(ahead(12, 4), 7);
  EXPECT_FALSE(core_.next_is_newest(0));
  EXPECT_TRUE(core_.changed(0));
  EXPECT_EQ(first_of(core_.value(0)), 1);
}

TEST_F(FromThePs, WhatWasAskedForIsTakenUnlessThereIsANewerOne) {
  core_.allocate(0);
  core_.pulled(0).ask_next();
  come(ahead(12, 4), 7);
  EXPECT_TRUE(core_.next_is_newest(0));
  core_.note_version(core_.pieces()[0], 5);
  EXPECT_FALSE(core_.next_is_newest(0));
  core_.take_next(0);
  EXPECT_EQ(first_of(core_.value(0)), 7);
  EXPECT_EQ(core_.held_version(core_.pieces()[0]), 4u);
  EXPECT_TRUE(core_.changed(0));
}

// A step has asked for a value, and waits for it. The step takes this value when it arrives, even
// if a newer value exists.
TEST_F(FromThePs, WhatCameIsNewerThanWhatIsHeldUntilItIsTaken) {
  core_.allocate(0);
  core_.note_held_version(core_.pieces()[0], 3);
  EXPECT_FALSE(core_.next_is_newer(0));
  core_.pulled(0).ask_next();
  core_.note_version(core_.pieces()[0], 5);
  come(ahead(12, 4), 7);
  EXPECT_TRUE(core_.next_is_newer(0));
  core_.take_next(0);
  EXPECT_FALSE(core_.next_is_newer(0));
}

// Empty values are refused before anything is written: no memory was placed for them.
TEST_F(FromThePs, EmptyValuesAskedForAheadAreRefused) {
  core_.allocate(0);
  core_.pulled(0).ask_next();
  come(ahead(12, 4), 7);
  core_.take_next(0);
  core_.pulled(0).ask_next();
  EXPECT_THROW(ps_.on_frame(ahead(0, 5), {}), Error);
  EXPECT_FALSE(core_.pulled(0).next_came());
}

TEST_F(FromThePs, ValuesThatAreNotAllOfAPieceAreRefused) {
  core_.allocate(0);
  core_.pulled(0).ask_next();
  for (const FrameHeader& header : {ahead(8, 1), ahead(16, 1), ahead(8, 1, 4), ahead(12, 1, 4)}) {
    EXPECT_THROW(ps_.place_payload(header), Error);
  }
  EXPECT_NO_THROW(ps_.place_payload(ahead(12, 1)));
}

}  // namespace
}  // namespace paceline
