"""What is used: samples of the node and of cgroups."""
