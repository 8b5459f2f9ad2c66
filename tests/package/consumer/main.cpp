#include <iostream>

#include "base/version.h"
#include "scheduler/op.h"

int main() {
  const auto op = everstep::scheduler::parse_op("F0.1.3@2");
  std::cout << "everstep " << everstep::kVersion << ": " << to_string(op.value()) << '\n';
}
