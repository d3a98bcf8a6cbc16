"""The vocabulary: Kubernetes objects as data, Quantity, QoS, strict decoding."""
