#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

// `everstep-worker doctor PART DEVICE DIRECTORY`: what of `everstep doctor` computes, and so needs LibTorch. PART is
// devices, operators, blocks, links or profile; DEVICE a kind ("cpu", "cuda"), or one of it ("cuda:1"); DIRECTORY has
// the text. The last line that it prints is an object: the figures, or "error" and "hint".
inline constexpr std::string_view kDoctorRole = "doctor";
ExitCode run_doctor_role(const std::vector<std::string>& args);

}  // namespace everstep::launcher
