#include "params/protocol/worker_greeting.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

Hello hello_of(int worker, int to) {
  Hello hello;
  hello.role = "worker";
  hello.index = worker;
  hello.ps = to;
  hello.cluster_id = "worker=a:1,b:2";
  hello.fingerprint = 7;
  hello.workers = 2;
  hello.flags = {"--strategy\tallreduce", "--accumulate\t1"};
  hello.process = "pid 1 on host a";
  return hello;
}

TEST(WorkerGreeting, WorkersOfOneJobConnect) {
  EXPECT_EQ(greeting_refusal(hello_of(0, 1), hello_of(1, 0)), "");
}

TEST(WorkerGreeting, WhateverDiffersIsNamed) {
  const auto refusal = [](void (*change)(Hello&)) {
    Hello theirs = hello_of(1, 0);
    change(theirs);
    return greeting_refusal(hello_of(0, 1), theirs);
  };
  EXPECT_EQ(refusal([](Hello& h) { h.version = 3; }),
            "it speaks protocol version 3, and worker:0 version 21");
  EXPECT_EQ(refusal([](Hello& h) { h.cluster_id = "worker=a:1,c:2"; }),
            "it is of another cluster: worker:1 is b:2 here, c:2 there");
  EXPECT_EQ(refusal([](Hello& h) { h.cluster_id = "other"; }), "it is of another cluster");
  EXPECT_EQ(refusal([](Hello& h) { h.index = 5; }),
            "worker:5 is not in the cluster, which has 2 workers");
  EXPECT_EQ(refusal([](Hello& h) { h.ps = 1; }),
            "this is worker:0, not worker:1: the addresses of the workers differ");
  EXPECT_EQ(refusal([](Hello& h) { h.index = 0; }), "pid 1 on host a is worker:0 already");
  EXPECT_EQ(refusal([](Hello& h) {
              h.flags = {"--strategy\tallreduce", "--accumulate\t4"};
            }),
            "worker:0's --accumulate is 1, that of worker:1 is 4");
  EXPECT_EQ(refusal([](Hello& h) { h.fingerprint = 8; }),
            "its variables differ from those of worker:0: all workers need the same model and "
            "flags");
}

}  // namespace
}  // namespace paceline
