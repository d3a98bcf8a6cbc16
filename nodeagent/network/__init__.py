"""Pod network namespaces, links and addresses."""
