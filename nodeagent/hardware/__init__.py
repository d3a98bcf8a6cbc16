"""What the machine is made of, read from sysfs."""
