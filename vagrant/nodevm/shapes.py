"""What machines there are to choose from: CPUs, NUMA nodes and memory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """CPUs are sockets x cores x threads, dealt out to the NUMA nodes in equal runs, as is the memory."""

    name: str
    description: str
    memory_mib: int
    sockets: int
    cores: int
    threads: int = 1
    numa_nodes: int = 1

    @property
    def cpus(self) -> int:
        return self.sockets * self.cores * self.threads

    def arguments(self) -> list[str]:
        """The topology as QEMU's options. More than one NUMA node wants its memory backends named."""
        topology = f"{self.cpus},sockets={self.sockets},cores={self.cores},threads={self.threads}"
        command = ["-smp", topology, "-m", f"{self.memory_mib}M"]
        if self.numa_nodes == 1:
            return command
        memory = self.memory_mib // self.numa_nodes
        cpus = self.cpus // self.numa_nodes
        for node in range(self.numa_nodes):
            first = node * cpus
            command += ["-object", f"memory-backend-ram,id=m{node},size={memory}M"]
            command += ["-numa", f"node,nodeid={node},cpus={first}-{first + cpus - 1},memdev=m{node}"]
        return command


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("plain", "2 CPUs, 1.6 GB", 1664, sockets=1, cores=2),
        Shape("numa2", "2 sockets x 2 cores x 2 threads, 2 NUMA nodes, 2 GB", 2048, 2, 2, 2, numa_nodes=2),
        Shape("numa4", "8 CPUs over 4 NUMA nodes, 2 GB", 2048, sockets=4, cores=2, numa_nodes=4),
        Shape("small", "2 CPUs, 700 MB", 700, sockets=1, cores=2),
        Shape("kubelet", "4 CPUs, 3 GB: the machine of the recorded kubelet tree", 3072, sockets=1, cores=4),
    )
}
