"""The only room that touches /sys/fs/cgroup: layout, values, files, drivers."""
