"""The objects of the API: which kinds there are, what may exist, how they are kept and watched."""
