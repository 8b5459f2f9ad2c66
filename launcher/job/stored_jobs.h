#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace everstep::launcher {

// Whether the directory holds the checkpoints of a job.
bool holds_job(const std::filesystem::path& directory);

// The jobs that a checkpoint directory (--checkpoint-dir) holds, by name.
std::vector<std::string> jobs_in(const std::filesystem::path& directory);

// For a job that is not there: the one that was most likely meant, else those that are; empty if there is none.
std::string job_hint(const std::string& job, const std::vector<std::string>& jobs);

}  // namespace everstep::launcher
