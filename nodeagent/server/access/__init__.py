"""Who may ask over the network: the node's own authority, certificates, and what they allow."""
