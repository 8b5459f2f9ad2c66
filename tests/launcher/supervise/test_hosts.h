#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher/cli/child_process.h"

namespace everstep::launcher {

// A host, as far as programs can tell: a network of its own, with a cable to the switch, a name of its own, and a
// directory for sockets that is empty although others have one of the same name. It shares all other files with them.
class TestHost {
 public:
  using Words = std::vector<std::string>;

  TestHost(const std::filesystem::path& log, const std::string& network, int number);

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  const std::string& address_v6() const { return address_v6_; }

  // What stands before the words of a program that is to run there.
  Words inside() const;
  // Runs a command of the shell there to its end; its exit status.
  int run(const std::string& command) const;

  // From now on only calls to these ports are let in.
  void close_all_ports_but(int first, int last) const;
  // Nothing comes through its cable any more, and then again.
  void cut() const;
  void heal() const;

 private:
  friend class TestHosts;

  std::string name_;
  std::string address_;
  std::string address_v6_;
  std::string cable_;  // its end at the switch
  ChildProcess holder_;
  std::filesystem::path log_;
};

// Hosts on one switch, to which this process is connected, too. All is gone with the object. Needs root.
class TestHosts {
 public:
  TestHosts(const std::filesystem::path& log, int count);
  TestHosts(const TestHosts&) = delete;
  TestHosts& operator=(const TestHosts&) = delete;
  ~TestHosts();

  static bool are_possible();

  const TestHost& operator[](int number) const { return *hosts_[number]; }
  const std::string& address() const { return address_; }  // of this process

 private:
  std::string switch_;
  std::string address_;
  std::vector<std::unique_ptr<TestHost>> hosts_;
};

}  // namespace everstep::launcher
