"""StableHLO modules by the bindings of jaxlib: reading, ids, normal form, hashing and printing."""
