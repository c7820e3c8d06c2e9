"""What runs have found: of one run, and read from a store, and measured again."""
