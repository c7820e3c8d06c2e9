"""Reference of a program, independent of schedules and generators: outputs, inputs, bounds of errors."""
