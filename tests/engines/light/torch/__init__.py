"""Not PyTorch: a package of its name, light enough for 64 ranks on two cores, whose collectives wait as PyTorch's do."""
