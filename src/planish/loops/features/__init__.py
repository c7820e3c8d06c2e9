"""Features of candidates, read from their schedules; no code is generated for them."""
