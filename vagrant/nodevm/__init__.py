"""The development node: a Debian virtual machine under plain QEMU. Standard library only."""
