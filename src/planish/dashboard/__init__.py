"""Live page of a store's runs, in a browser."""
