"""Who gets which CPUs, memory and devices."""
