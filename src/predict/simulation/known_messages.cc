#include "predict/simulation/known_messages.h"

namespace paceline {

// The switch has no default, so that the compiler names a missing message.
Simulated simulated_as(MessageType type) {
  switch (type) {
    case MessageType::kHello:
    case MessageType::kWelcome:
    case MessageType::kDeclare:
    case MessageType::kDeclared:
    case MessageType::kWriteEnd:
    case MessageType::kWritten:
    case MessageType::kInitialised:
    case MessageType::kPull:
    case MessageType::kOrder:
    case MessageType::kValues:
    case MessageType::kRowValues:
    case MessageType::kStepBegin:
    case MessageType::kChunk:
    case MessageType::kRowIds:
    case MessageType::kContribution:
    case MessageType::kTaken:
    case MessageType::kCopied:
    case MessageType::kClip:
    case MessageType::kStepEnd:
    case MessageType::kStepDone:
    case MessageType::kStepLimit:
    case MessageType::kJobState:
    case MessageType::kWhole:
    case MessageType::kDecided:
    case MessageType::kSquares:
    case MessageType::kScale:
    case MessageType::kGiven:
    case MessageType::kCommitted:
    case MessageType::kRoundOpen:
    case MessageType::kGroupStatus:
    case MessageType::kPropose:
    case MessageType::kAgree:
    case MessageType::kForm:
    case MessageType::kCollectiveBegin:
    case MessageType::kSumsWhole:
    case MessageType::kCommit:
    case MessageType::kPartialSum:
    case MessageType::kContributedRows:
    case MessageType::kInPlace:
      return Simulated::kDriven;
    // These messages are sent for the values that fetch steps read.
    case MessageType::kPullRows:
    case MessageType::kPullNext:
    case MessageType::kChanged:
    case MessageType::kReadDone:
    // These belong to beginnings, ends and checkpoints.
    case MessageType::kAttend:
    case MessageType::kRoster:
    case MessageType::kRefuse:
    case MessageType::kWrite:
    case MessageType::kRead:
    case MessageType::kState:
    case MessageType::kDone:
    case MessageType::kGoodbye:
    case MessageType::kEndTraining:
    case MessageType::kFindFile:
    case MessageType::kFoundFile:
    case MessageType::kMark:
    case MessageType::kSaveShard:
    case MessageType::kSaved:
    case MessageType::kReadMarked:
    case MessageType::kMarked:
    case MessageType::kAskState:
    case MessageType::kTaskState:
    case MessageType::kStop:
    case MessageType::kBusy:
    case MessageType::kHandled:
    case MessageType::kRestarted:
    case MessageType::kBeginAgain:
    case MessageType::kWithdraw:
    case MessageType::kValuesSent:
    // These messages take no step time, since workers ask for records ahead. Sums in the middle
    // of a step (kExchangedSums) are not predicted.
    case MessageType::kAskRecords:
    case MessageType::kRecords:
    case MessageType::kReadsRecords:
    case MessageType::kExchangedSums:
    // These messages are sent while somebody watches the run: some KB a second.
    case MessageType::kAskProgress:
    case MessageType::kProgress:
    // These messages are sent while a timeline is recorded: a frame of 32 bytes for each step.
    case MessageType::kAskClock:
    case MessageType::kClock:
      return Simulated::kNotInASteadyRun;
  }
  return Simulated::kNotInASteadyRun;
}

}  // namespace paceline
