"""Where desired pods come from."""
