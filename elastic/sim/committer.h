#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "elastic/records.h"
#include "elastic/sim/checkpoint_files.h"
#include "elastic/view.h"

namespace everstep::elastic::sim {

class CommitTerm;
class MemberLoop;

// The leader's part in saving: collects acknowledgements of the present generation, makes a checkpoint of them, tells
// what became of it and cleans up. One term is one generation under one leadership; what a term was told it concludes
// even if it is over.
class Committer {
 public:
  explicit Committer(MemberLoop& self) : self_(self) {}

  // `leader` is when this worker's leadership was created; 0: it does not lead.
  void look(const View& view, Revision leader);

 private:
  void begin(const View& view, const GenerationRecord& generation, Revision opened, Revision leader);
  void collect(const View& view);
  void tell_verdicts();

  MemberLoop& self_;
  std::shared_ptr<CommitTerm> term_;
  std::set<std::string> taken_;
};

}  // namespace everstep::elastic::sim
