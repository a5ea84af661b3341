#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/testing/ps_machine.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PsJobProgress, TheChiefHearsOfTheOtherWorkersByPs0) {
  PsMachine it;
  it.start();
  it.received(10, MessageType::kAskProgress);
  EXPECT_THAT(take_text(it.out), ElementsAre("11 ask_progress", "12 ask_progress"));
  it.received(12, MessageType::kProgress, std::string("40 steps"));
  const auto told = std::get<Outbox::Send>(it.out.actions().back());
  EXPECT_EQ(told.to, 10u);
  EXPECT_EQ(told.message.as<std::string>(), "40 steps");
  EXPECT_EQ(told.message.step, 3u) << "1 + the index of the worker";
}

TEST(PsJobProgress, AWorkerThatHasNotAnsweredIsNotAskedAgain) {
  PsMachine it;
  it.start();
  it.received(10, MessageType::kAskProgress);
  it.received(11, MessageType::kProgress, std::string("a"));
  it.out.clear();
  it.received(10, MessageType::kAskProgress);
  EXPECT_THAT(take_text(it.out), ElementsAre("11 ask_progress"));
}

TEST(PsJobProgress, WhatNobodyHasAskedForGoesNowhere) {
  PsMachine it;
  it.start();
  it.received(11, MessageType::kProgress, std::string("a"));
  EXPECT_THAT(take_text(it.out), IsEmpty());
}

TEST(PsJobProgress, OnlyTheChiefMayAsk) {
  PsMachine it;
  it.start();
  EXPECT_THROW(it.received(11, MessageType::kAskProgress), Error);
}

TEST(PsJobProgress, AnotherPsAnswersForItselfOnly) {
  PsTaskOptions options = PsMachine::options();
  options.ps = 1;
  PsMachine it(options);
  for (int worker = 0; worker < 2; ++worker) {
    Hello hello = PsMachine::hello_of(worker);
    hello.ps = 1;
    it.greet(10 + PeerId(worker), hello);
    it.received(10 + PeerId(worker), MessageType::kDeclare, it.declare);
  }
  it.out.clear();
  it.received(10, MessageType::kAskProgress);
  EXPECT_THAT(take_text(it.out), IsEmpty());
}

}  // namespace
}  // namespace paceline
