"""Reference of a program, independent of schedules and generators: answers, inputs, bounds of errors."""
