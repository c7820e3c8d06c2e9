"""Running machine code: on arrays, by threads, in calls from Python, from C."""
